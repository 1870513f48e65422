package inject

import (
	"context"

	"github.com/jobferry/jobferry/e2e/rig/policy"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// ofWorker is a worker's policy for the Jobs that it has of the hub. It has one at a time.
var ofWorker = policy.Policy{Name: "chaos"}

// theMarks are those by which the manager knows a mirror: single ones, and both.
var theMarks = [][]string{{originMark}, {hubUIDMark}, {originMark, hubUIDMark}}

const (
	originMark = "labels " + v1alpha1.LabelOrigin
	hubUIDMark = "annotations " + v1alpha1.AnnotationHubUID
)

// marks are those that a fault removes.
func (f fault) marks() []string { return theMarks[f.Number%len(theMarks)] }

// policy has a worker's admission follow a policy, and no more.
func (f fault) policy(text string) (func() error, error) {
	do := func(ctx context.Context, args ...string) error {
		return retry(ctx, func() error {
			_, err := f.worker().Kubectl(ctx, text, args...)
			return err
		})
	}
	return func() error {
		return do(context.WithoutCancel(f.ctx), "delete", "--ignore-not-found", "-f", "-")
	}, do(f.ctx, "apply", "-f", "-")
}
