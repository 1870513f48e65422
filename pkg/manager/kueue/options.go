package kueue

import (
	"errors"
	"fmt"
	"time"
)

// Options say how to work with Kueue.
type Options struct {
	// Disabled: Kueue is left alone, even if its CRDs are there.
	Disabled bool
	// Namespace is Kueue's own, where MultiKueueClusters have their Secrets. Default kueue-system.
	Namespace string
	// RetryAfter is how long a Job that fits in no worker keeps its quota, before it's given back.
	// Default 2m.
	RetryAfter time.Duration
	// RequeueAfter is how long a Job whose quota was given back stays out of the queue; it doubles
	// each time, up to MaxRequeueAfter. Defaults 30s and 10m.
	RequeueAfter, MaxRequeueAfter time.Duration
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		Namespace:       "kueue-system",
		RetryAfter:      2 * time.Minute,
		RequeueAfter:    30 * time.Second,
		MaxRequeueAfter: 10 * time.Minute,
	}
}

// Validate reports all settings that can't be used.
func (o *Options) Validate() error {
	var errs []error
	if o.Namespace == "" {
		errs = append(errs, errors.New("namespace: must not be empty"))
	}
	if o.RetryAfter <= 0 {
		errs = append(errs, fmt.Errorf("retry after: must be positive, but is %s", o.RetryAfter))
	}
	if o.RequeueAfter < time.Second {
		errs = append(errs, fmt.Errorf("requeue after: must be at least 1s, but is %s", o.RequeueAfter))
	}
	if o.MaxRequeueAfter < o.RequeueAfter {
		errs = append(errs, fmt.Errorf("longest requeue after: must not be shorter than the first (%s), but is %s",
			o.RequeueAfter, o.MaxRequeueAfter))
	}
	return errors.Join(errs...)
}
