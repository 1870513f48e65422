package job

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
)

func TestHandlingOf(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	rows := map[string]struct {
		err  error
		want handling
	}{
		"its watch is behind":       {&workerError{"a", errUnshown}, awaitEvent},
		"the worker is busy":        {fmt.Errorf("Mirrored: %w", errWorkerBusy), ignore},
		"the hub's cache is behind": {fmt.Errorf("Unmirrored: %w", errStale), awaitEvent},
		"a mirror has just gone":    {fmt.Errorf("MirrorMissing: %w", errJustGone), awaitEvent},
		"the hub Job has changed":   {apierrors.NewConflict(jobs, "train", errors.New("changed")), awaitEvent},
		"the mirror has changed":    {&workerError{"a", apierrors.NewConflict(jobs, "train", errors.New("changed"))}, awaitEvent},
		"the worker is away":        {&workerError{"a", fmt.Errorf("get: %w", clusters.ErrNotConnected)}, awaitEvent},
		"the worker is slow":        {&workerError{"a", apierrors.NewTimeoutError("slow", 1)}, retry},
		"the worker has too much":   {&workerError{"a", apierrors.NewTooManyRequestsError("later")}, pause},
		"the hub is down":           {&hubError{errors.New("connection refused")}, retry},
		"the hub's admission":       {fmt.Errorf("Unplaced: %w", &hubError{apierrors.NewForbidden(jobs, "train", errors.New("policy"))}), terminal},
		"a worker's is reported":    {&workerError{"a", apierrors.NewForbidden(jobs, "train", errors.New("policy"))}, retry},
		"the hub Job is too large":  {&hubError{apierrors.NewRequestEntityTooLargeError("1.5 MiB")}, terminal},
		"the hub Job was changed":   {&hubError{apierrors.NewConflict(jobs, "train", errors.New("changed"))}, awaitEvent},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if got := handlingOf(row.err); got != row.want {
				t.Errorf("%s, want %s", got, row.want)
			}
		})
	}
}

func TestForbidden(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	denied := apierrors.NewForbidden(jobs, "train", errors.New("cannot patch jobs/status"))
	if told := forbidden(fmt.Errorf("Mirrored: %w", &workerError{"a", denied})); len(told) != 1 ||
		told[0].Reason != v1alpha1.EventForbidden || !strings.Contains(told[0].Message, "cannot patch jobs/status") {
		t.Errorf("told %+v", told)
	}
	if told := forbidden(fmt.Errorf("Unplaced: %w", &hubError{denied})); len(told) != 1 ||
		told[0].Reason != v1alpha1.EventForbidden || !strings.Contains(told[0].Message, "The hub refuses") {
		t.Errorf("told %+v", told)
	}
	for name, err := range map[string]error{
		"a live read":     fmt.Errorf("Mirrored: %w", denied),
		"another trouble": &workerError{"a", apierrors.NewTimeoutError("slow", 1)},
	} {
		if told := forbidden(err); told != nil {
			t.Errorf("%s: told %+v", name, told)
		}
	}
}

func TestRefusalOf(t *testing.T) {
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	rows := map[string]struct {
		err     error
		refused bool
	}{
		"no namespace":       {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team"), true},
		"a quota":            {apierrors.NewForbidden(jobs, "train", errors.New("exceeded quota")), true},
		"a field it refuses": {apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "train", nil), true},
		"a webhook":          {apierrors.NewBadRequest("denied"), true},
		"too busy":           {apierrors.NewTooManyRequestsError("later"), false},
		"it doesn't answer":  {errors.New("i/o timeout"), false},
		"it doesn't know us": {apierrors.NewUnauthorized("expired"), false},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			var refusal *refusalError
			if got := errors.As(refusalOf(&fakeWorker{api: &apiServer{name: "a"}}, "team", row.err), &refusal); got != row.refused {
				t.Errorf("refused: %v, want %v", got, row.refused)
			}
			if row.refused && refusal.reason != v1alpha1.EventMirrorRefused {
				t.Errorf("reason %s", refusal.reason)
			}
		})
	}
}
