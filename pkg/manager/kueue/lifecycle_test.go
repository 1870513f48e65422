package kueue

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Kueue may be installed and removed while the manager runs.
func TestKueueComesAndGoes(t *testing.T) {
	h := &hub{}
	lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
		if without, with := h.synced(); !without || !with || h.enqueued != 1 || h.sessions != 0 {
			t.Errorf("without Kueue: %+v", h)
		}
		for _, step := range []struct {
			served   []string
			sessions int
			enqueued int
		}{
			{resources[:2], 0, 1}, // an older Kueue
			{slices.Concat(resources, []string{"cohorts"}), 1, 2},
			{resources, 1, 2},
			{resources[1:], 0, 3},
			{resources, 1, 4},
			{nil, 0, 5},
		} {
			h.served = step.served
			h.setCRDs(t, step.served...)
			wait(time.Millisecond)
			if without, with := h.synced(); !without || !with || h.sessions != step.sessions || h.enqueued != step.enqueued {
				t.Errorf("with %v: %v %v %d sessions, %d times enqueued, want %+v", step.served, without, with, h.sessions, h.enqueued, step)
			}
		}
	})
}

// A hub whose API is what its CRDs say isn't asked again without an event.
func TestPoll(t *testing.T) {
	for name, row := range map[string]struct {
		served []string
		crds   []string
		polls  bool
	}{
		"no Kueue":                   {nil, nil, false},
		"some CRDs, not all":         {resources[:2], resources[:2], false},
		"all CRDs, and a session":    {resources, resources, false},
		"all CRDs, not yet served":   {nil, resources, true},
		"CRDs gone, still served":    {resources, nil, true},
		"one CRD gone, still served": {resources, resources[1:], true},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hub{}
			lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
				h.served = row.served
				h.setCRDs(t, append(resources[:len(resources):len(resources)], "cohorts")...)
				h.setCRDs(t, append(row.crds[:len(row.crds):len(row.crds)], "pods")...)
				wait(time.Millisecond)
				before := h.asked
				h.setCRDs(t, append(row.crds[:len(row.crds):len(row.crds)], "cohorts")...)
				wait(time.Hour)
				if polls := h.asked - before; (polls > 0) != row.polls || polls > int(time.Hour/pollInterval) {
					t.Errorf("asked %d times in an hour, want any: %v", polls, row.polls)
				}
			})
		})
	}
}

// Without the right to list CRDs, the manager dispatches at once, and works with a Kueue that comes
// later. It logs once what is missing, and stops polling once the right is granted.
func TestMissingRightToListCRDs(t *testing.T) {
	h := &hub{watch: apierrors.NewForbidden(crdResource.GroupResource(), "", errors.New("cannot list"))}
	lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
		if without, with := h.synced(); !without || !with || h.enqueued != 1 {
			t.Errorf("at the start: synced without a queue %v, with one %v; enqueued %d times", without, with, h.enqueued)
		}
		wait(time.Hour)
		if len(h.log) != 1 {
			t.Errorf("logged %d times: %v", len(h.log), h.log)
		}
		for _, part := range []string{"customresourcedefinitions", "cannot list", "kueue.enabled=true", "jobferry-kueue", "--kueue-disabled"} {
			if !strings.Contains(h.log[0], part) {
				t.Errorf("the log doesn't name %s: %s", part, h.log[0])
			}
		}
		h.served = resources
		wait(pollInterval)
		if h.sessions != 1 || h.enqueued != 2 {
			t.Errorf("with Kueue: %d sessions, enqueued %d times", h.sessions, h.enqueued)
		}
		h.watch = nil
		h.setCRDs(t, resources...)
		wait(time.Minute)
		before := h.asked
		wait(time.Hour)
		if h.asked != before || h.sessions != 1 {
			t.Errorf("with the right: asked %d times in an hour, %d sessions", h.asked-before, h.sessions)
		}
	})
}

// A manager without a right that Kueue's integration needs dispatches the Jobs that name no queue.
// It logs which right is missing, asks again less and less often, and takes up the right once it's
// granted.
func TestMissingRight(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Group: kueue.SchemeGroupVersion.Group, Resource: "workloads"}, "", errors.New("cannot list"))
	for name, tc := range map[string]struct{ discover, list error }{
		"to discover Kueue's API": {discover: refused},
		"to list Kueue's objects": {list: refused},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hub{served: resources, discover: tc.discover, list: tc.list}
			lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
				if without, with := h.synced(); !without || with || h.enqueued != 1 {
					t.Errorf("at the start: synced without a queue %v, with one %v; enqueued %d times", without, with, h.enqueued)
				}
				for _, part := range []string{"workloads", "cannot list", "kueue.enabled=true", "jobferry-kueue", "system:discovery", "--kueue-disabled"} {
					if !strings.Contains(h.log[0], part) {
						t.Errorf("the log doesn't name %s: %s", part, h.log[0])
					}
				}
				wait(time.Hour)
				if len(h.log) < 60 || len(h.log) > 70 || h.enqueued != 1 {
					t.Errorf("%d attempts in an hour, enqueued %d times", len(h.log), h.enqueued)
				}
				h.discover, h.list = nil, nil
				wait(time.Minute)
				if without, with := h.synced(); !without || !with || h.enqueued != 2 || h.sessions != 1 {
					t.Errorf("with the right: synced without a queue %v, with one %v; enqueued %d times, %d sessions", without, with, h.enqueued, h.sessions)
				}
			})
		})
	}
}

// A Kueue that comes, and whose objects can't be listed, isn't passed over: Jobs with a queue wait.
func TestKueueComesUnreadable(t *testing.T) {
	h := &hub{list: errors.New("timeout")}
	lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
		h.served = resources
		h.setCRDs(t, resources...)
		wait(time.Millisecond)
		if without, with := h.synced(); !without || with || h.attempts == 0 {
			t.Errorf("synced without a queue %v, with one %v; %d attempts", without, with, h.attempts)
		}
	})
}

// A hub that doesn't answer for a while ends no session.
func TestDiscoveryFails(t *testing.T) {
	h := &hub{served: resources}
	lifecycleOf(t, h, func(t *testing.T, wait func(time.Duration)) {
		h.setCRDs(t, resources...)
		wait(time.Minute)
		h.discover = errors.New("connection refused")
		h.setCRDs(t, slices.Concat(resources[1:])...)
		wait(pollInterval)
		if without, with := h.synced(); !without || !with || h.sessions != 1 {
			t.Errorf("synced without a queue %v, with one %v; %d sessions", without, with, h.sessions)
		}
	})
}
