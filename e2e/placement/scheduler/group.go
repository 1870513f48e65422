package main

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// jobOf is the name of a new Pod's Job.
func jobOf(p *corev1.Pod) string { return p.Name[:strings.LastIndex(p.Name, "-")] }

// findEach tries one Pod of each Job in the empty cluster, if none of the Job was bound before:
// first that one, then one of each other Job.
func (r *request) findEach(ctx context.Context, current *scene, a *answer) error {
	a.Found = current.bound
	var firsts []*corev1.Pod
	for _, p := range r.New {
		if !slices.ContainsFunc(firsts, func(o *corev1.Pod) bool { return jobOf(o) == jobOf(p) }) {
			firsts = append(firsts, p)
		}
	}
	for i, p := range firsts {
		if slices.ContainsFunc(a.Found, func(name string) bool { return strings.HasPrefix(name, jobOf(p)+"-") }) {
			continue
		}
		empty, err := r.empty(slices.Concat(firsts[i:], firsts[:i]))
		if err != nil {
			return err
		}
		bound, _, err := empty.schedule(ctx)
		if err != nil {
			return err
		}
		a.Empty = a.Empty || bound > 0
		a.Found = append(a.Found, empty.bound...)
	}
	return nil
}
