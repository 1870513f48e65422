package job

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/dispatch"
)

// failing is an action of dispatch that fails.
type failing struct {
	action dispatch.Action
	given  func(*world) // the action is due
	write  string       // the server and the verb of the action's first request
	// refused is the event if the API server refuses the request for good; in a worker, the manager
	// tries again, unless something else is said here.
	refused string
	accepts bool // the refusal is an answer
	moves   bool // the Job moves to worker b then
	retries bool // conflicts are retried at once
}

var failingActions = []failing{
	{dispatch.Place{}, func(w *world) { w.submits(aJob("train")) }, "hub patch", v1alpha1.EventForbidden, false, false, false},
	{dispatch.GoBack{}, func(w *world) {
		w.worker("a").view.Labels = map[string]string{"tier": "owned"}
		w.worker("a").drains(true)
		w.submits(aJob("train", prefers("tier=owned; *; return after 0s")))
		w.step(time.Second)
		w.worker("a").drains(false)
		w.clock.Step(time.Second)
	}, "hub patch", v1alpha1.EventForbidden, false, false, false},
	{dispatch.Restore{}, given(dispatch.PlacementMissing), "hub patch", v1alpha1.EventForbidden, false, false, false},
	{dispatch.WriteStatus{}, func(w *world) {
		runs(w)
		w.worker("a").completes(1)
	}, "hub status", v1alpha1.EventForbidden, false, false, false},
	{dispatch.Divide{}, func(w *world) { w.submits(divisible(8, 4)) }, "hub patch", v1alpha1.EventForbidden, false, false, false},
	{dispatch.RemoveFinalizer{}, func(w *world) {
		runs(w)
		w.deletes(metav1.DeletePropagationBackground)
	}, "hub patch", v1alpha1.EventForbidden, false, false, false},
	{dispatch.CreateMirror{}, func(w *world) { w.submits(aJob("train")) }, "a create", v1alpha1.EventMirrorRefused, true, true, false},
	{dispatch.SeedMirror{}, given(dispatch.MirrorMissing), "a status", v1alpha1.EventForbidden, false, false, false},
	{dispatch.CarryObjects{}, needsConfigMap, "a create ConfigMap", v1alpha1.EventFailedCarry, true, true, true},
	{dispatch.PatchMirror{}, given(dispatch.Mirrored), "a patch", v1alpha1.EventDrift, true, false, false},
	{dispatch.PatchRecentFields{}, func(w *world) {
		w.submitsWithFuture()
		w.run()
		w.hasField(future, "new")
		w.deliver()
	}, "a patch", v1alpha1.EventDrift, true, false, false},
	{dispatch.DeleteMirror{}, func(w *world) {
		runs(w)
		w.deletes(metav1.DeletePropagationBackground)
	}, "a delete", v1alpha1.EventForbidden, false, false, false},
	{dispatch.SuspendMirror{}, func(w *world) {
		runs(w)
		w.worker("a").drains(true)
	}, "a patch", v1alpha1.EventForbidden, false, false, false},
	{dispatch.ConfirmLeft{}, func(w *world) {
		runs(w)
		w.worker("a").drains(true)
	}, "a get", v1alpha1.EventForbidden, false, false, false},
	{dispatch.UnfenceMirror{}, func(w *world) {
		runs(w)
		w.worker("a").api.change(jobKey, annotated(v1alpha1.AnnotationFenced, "2026-03-01T12:00:01Z"))
	}, "a patch", v1alpha1.EventForbidden, false, false, false},
	{dispatch.ReadErrors{}, hasNoPods, "a list", v1alpha1.EventPodsWaiting, true, false, false},
	{dispatch.DisownMirror{}, func(w *world) {
		runs(w)
		w.worker("a").isRemoved(v1alpha1.RemovalOrphan)
	}, "a patch", v1alpha1.EventForbidden, false, false, false},
}

// given leads to a situation.
func given(name dispatch.Situation) func(*world) {
	i := slices.IndexFunc(situations(), func(s situation) bool { return s.name == name })
	return situations()[i].given
}

// needsConfigMap submits a Job that takes a ConfigMap along.
func needsConfigMap(w *world) {
	for _, v := range w.workers {
		v.view.Spec.Carry = []v1alpha1.CarriedKind{v1alpha1.CarryConfigMaps}
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "settings", UID: "settings"}}
	if err := w.hub.others.Create(w.Context(), settings); err != nil {
		w.Fatal(err)
	}
	w.submits(aJob("train", func(job *batchv1.Job) {
		job.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
		}}
	}))
}

// hasNoPods has a Job that was started, and whose Pods can't be created.
func hasNoPods(w *world) {
	w.worker("a").idle = true
	w.submits(aJob("train"))
	w.run()
	w.worker("a").api.change(jobKey, func(m *batchv1.Job) { m.Status.StartTime = ptr.To(metav1.NewTime(w.clock.Now())) })
	w.run()
	w.clock.Step(dispatch.DefaultTiming().StuckNotice)
	w.triggers.Enqueue(jobKey)
}

// failures are errors of each kind, with what Reconcile makes of them.
var failures = map[string]struct {
	err     error
	retries bool
	after   time.Duration
}{
	"a timeout":          {apierrors.NewTimeoutError("slow", 1), true, 0},
	"a conflict":         {conflict("train"), false, awaitAtMost},
	"no connection":      {fmt.Errorf("patch: %w", clusters.ErrNotConnected), false, awaitAtMost},
	"a newer hub object": {errStale, false, awaitAtMost},
}

// An action that fails for a while only delays the Job, and says nothing to its user.
func TestActionsFailForAWhile(t *testing.T) {
	for _, row := range failingActions {
		want := row.undisturbed(t)
		for name, failure := range failures {
			t.Run(fmt.Sprintf("%T/%s", row.action, name), func(t *testing.T) {
				w := newWorld(t)
				row.given(w)
				result, err := w.refuse(row.write, failure.err)
				if row.retries && apierrors.IsConflict(failure.err) {
					failure.retries, failure.after = true, 0
				}
				if failure.retries != (err != nil) || result.RequeueAfter != failure.after {
					w.fail("Reconcile returns %+v, %v", result, err)
				}
				if at, ok := w.due[jobKey]; !ok || at.After(w.clock.Now().Add(awaitAtMost)) {
					w.fail("the Job isn't reconciled again soon")
				}
				w.expectSameEnd(want)
				if got, want := reasons(w.events), reasons(want.events); !slices.Equal(got, want) {
					w.fail("events %v, want %v", got, want)
				}
			})
		}
	}
}

// An action that an API server refuses is reported. It is carried out when it is allowed, or the
// Job continues elsewhere.
func TestActionsAreRefused(t *testing.T) {
	denied := apierrors.NewForbidden(jobsResource, "train", errors.New("a policy"))
	for _, row := range failingActions {
		t.Run(fmt.Sprintf("%T", row.action), func(t *testing.T) {
			w, want := newWorld(t), row.undisturbed(t)
			row.given(w)
			result, err := w.refuse(row.write, denied)
			isOfHub := strings.HasPrefix(row.write, "hub ")
			if retries := !isOfHub && !row.accepts; retries != (err != nil) {
				w.fail("Reconcile returns %+v, %v", result, err)
			}
			if isOfHub && result.RequeueAfter != time.Second {
				w.fail("the Job is reconciled again after %s, want 1s", result.RequeueAfter)
			}
			if !row.moves {
				w.expectSameEnd(want)
			} else if w.step(20 * time.Minute); !w.running("b") || w.running("a") {
				w.fail("the Job doesn't run in b:\n%s", w.state())
			}
			if reports := reasons(w.events); !slices.Contains(reports, row.refused) {
				w.fail("events %v, want %s", reports, row.refused)
			}
		})
	}
}

// A Job for which a worker has no place waits for one, and isn't looked at again and again until
// then.
func TestActionsAreDeferred(t *testing.T) {
	for _, row := range failingActions {
		worker, _, _ := strings.Cut(row.write, " ")
		if worker == "hub" {
			continue // the hub has no limit
		}
		t.Run(fmt.Sprintf("%T", row.action), func(t *testing.T) {
			w, want := newWorld(t), row.undisturbed(t)
			row.given(w)
			others := types.NamespacedName{Name: "others"}
			for w.limiter.acquire(worker, others) {
			}
			w.run()
			if due, waits := w.due[jobKey]; waits && due.Before(w.clock.Now().Add(2*awaitAtMost)) {
				w.fail("the Job waits for %v", w.due)
			}
			for range 2 {
				w.limiter.release(worker)
			}
			w.expectSameEnd(want)
		})
	}
}

func TestNoActionIsLeftOut(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "apply.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	// These only clean up: they fail in TestNothingKeepsAMirrorForGood and
	// TestMirrorsThatOnlyTheirPodsShow. SideBySide fails as an action in it does.
	found, others := 0, []string{"LetGo", "SeekUnmarked", "SideBySide"}
	ast.Inspect(file, func(n ast.Node) bool {
		clause, ok := n.(*ast.CaseClause)
		if !ok || len(clause.List) != 1 {
			return true
		}
		if name, ok := clause.List[0].(*ast.SelectorExpr); ok && !slices.Contains(others, name.Sel.Name) {
			found++
			if !slices.ContainsFunc(failingActions, func(f failing) bool { return fmt.Sprintf("%T", f.action) == "dispatch."+name.Sel.Name }) {
				t.Errorf("%s never fails", name.Sel.Name)
			}
		}
		return true
	})
	if found != len(failingActions) {
		t.Errorf("%d actions in apply.go, %d in the table", found, len(failingActions))
	}
}

// undisturbed is the world in which nothing fails.
func (f failing) undisturbed(t *testing.T) *world {
	w := newWorld(t)
	f.given(w)
	w.step(20 * time.Minute)
	return w
}

// refuse has the next requests of a kind fail until Reconcile returns, and returns what Reconcile
// made of it.
func (w *world) refuse(what string, err error) (ctrl.Result, error) {
	w.Helper()
	refused := false
	w.refuses = func(sent write) error {
		request := sent.server + " " + sent.verb
		if sent.object != nil {
			request += nameOf(sent.object)
		}
		if !strings.HasPrefix(request+" ", what+" ") {
			return nil
		}
		refused = true
		return err
	}
	result, got := w.runUntil(func() bool { return refused })
	w.refuses = nil
	if !refused {
		w.fail("there was no %s", what)
	}
	return result, got
}

func (w *world) expectSameEnd(want *world) {
	w.Helper()
	w.step(20 * time.Minute)
	if w.state() != want.state() {
		w.fail("ends as:\n%swant:\n%s", w.state(), want.state())
	}
}

// reasons are the reasons of events.
func reasons(events []string) []string {
	var all []string
	for _, e := range events {
		reason, _, _ := strings.Cut(e, ":")
		all = append(all, reason)
	}
	return all
}

// A policy of a worker that refuses a change goes away after some seconds: the change is made soon
// after that, though nothing tells.
func TestARefusalThatPasses(t *testing.T) {
	w := newWorld(t)
	runs(w)
	tries := 0
	w.refuses = func(sent write) error {
		if sent.server != "a" || sent.verb != "patch" {
			return nil
		}
		tries++
		return apierrors.NewForbidden(jobsResource, "train", errors.New("a policy says no"))
	}
	w.suspends()
	w.step(20 * time.Second)
	if tries < 4 || tries > 6 || ptr.Deref(w.worker("a").mirrors()[jobKey].Spec.Suspend, false) {
		w.fail("%d tries", tries)
	}
	w.refuses = nil
	w.step(20 * time.Second)
	if !ptr.Deref(w.worker("a").mirrors()[jobKey].Spec.Suspend, false) {
		w.fail("the mirror isn't suspended")
	}
}
