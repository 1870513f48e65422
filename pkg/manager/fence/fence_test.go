package fence

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters"
	"github.com/jobferry/jobferry/pkg/manager/packed"
	"github.com/jobferry/jobferry/pkg/worker/fence"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// aView is a worker with the embedded controller that is Ready.
func aView(edits ...func(*clusters.View)) clusters.View {
	v := clusters.View{}
	v.State, v.Spec.JobController = clusters.Ready, v1alpha1.JobControllerEmbedded
	for _, edit := range edits {
		edit(&v)
	}
	return v
}

func builtIn(v *clusters.View)    { v.Spec.JobController = v1alpha1.JobControllerBuiltIn }
func removing(v *clusters.View)   { v.Removing = true }
func orphan(v *clusters.View)     { v.Spec.RemovalPolicy = v1alpha1.RemovalOrphan }
func connecting(v *clusters.View) { v.State = clusters.Connecting }
func lost(v *clusters.View)       { v.State, v.Since = clusters.Disconnected, noon }

func embeddedMirror() packed.Facts {
	return packed.Facts{ManagedBy: v1alpha1.ManagedByWorker}
}

func TestDecide(t *testing.T) {
	some, none := []packed.Facts{{}, embeddedMirror()}, []packed.Facts{{}}
	for name, row := range map[string]struct {
		view    clusters.View
		mirrors []packed.Facts
		want    step
	}{
		"embedded":                              {aView(), nil, renew},
		"built-in":                              {aView(builtIn), none, release},
		"built-in, with mirrors of the other":   {aView(builtIn), some, renew},
		"removed, with mirrors":                 {aView(removing), some, renew},
		"orphaned":                              {aView(removing, orphan), some, release},
		"removed, without":                      {aView(removing), nil, release},
		"lost":                                  {aView(lost), some, wait},
		"answers again, but its Jobs may move":  {aView(lost, connecting), some, wait},
		"after a restart of the manager":        {aView(connecting), nil, renew},
		"after a restart, mirrors not known":    {aView(connecting, removing), nil, wait},
		"answers, but its Jobs can't be listed": {aView(func(v *clusters.View) { v.State, v.Since = clusters.Disconnected, noon }), some, wait},
		"refused":                               {aView(func(v *clusters.View) { v.State = clusters.Refused }), nil, wait},
	} {
		if got := decide(row.view, row.mirrors); got != row.want {
			t.Errorf("%s: %s, want %s", name, got, row.want)
		}
	}
}

// hub is a renewer of a worker whose API server is in memory.
type hub struct {
	t       *testing.T
	view    clusters.View
	mirrors []packed.Facts
	timeout time.Duration
	client  client.Client
	clock   *testingclock.FakeClock
	refuse  func(verb string, obj client.Object) error
	writes  []string
	said    metav1.Condition
	*renewer
}

func (h *hub) Name() string               { return "w1" }
func (h *hub) View() clusters.View        { return h.view }
func (h *hub) LostTimeout() time.Duration { return h.timeout }
func (h *hub) Mirrors() []packed.Facts    { return h.mirrors }
func (h *hub) Client() client.Client      { return h.client }

func newHub(t *testing.T) *hub {
	h := &hub{t: t, view: aView(), timeout: 15 * time.Minute, clock: testingclock.NewFakeClock(noon)}
	send := func(verb string, obj client.Object, do func() error) error {
		h.writes = append(h.writes, verb)
		if h.refuse != nil {
			if err := h.refuse(verb, obj); err != nil {
				return err
			}
		}
		return do()
	}
	h.client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return send("create", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			return send("patch", obj, func() error { return c.Patch(ctx, obj, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return send("delete", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
	})
	h.renewer = newRenewer(h, Options{Origin: "hub", Clock: h.clock}.withDefaults(), func(_ string, c metav1.Condition) { h.said = c })
	return h
}

func (h *hub) lease() *coordinationv1.Lease {
	h.t.Helper()
	var l coordinationv1.Lease
	err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: "jobferry-fence-hub"}, &l)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return &l
}

// answer is jobferry-worker's.
func (h *hub) answer(after string) {
	h.t.Helper()
	l := h.lease()
	l.Annotations[v1alpha1.AnnotationFenceAfter] = after
	if err := h.client.Update(h.t.Context(), l); err != nil {
		h.t.Fatal(err)
	}
}

func TestLeaseIsMadeAndRenewed(t *testing.T) {
	h := newHub(t)
	if next := h.sync(t.Context()); next != time.Second {
		t.Errorf("looks for the answer after %v", next)
	}
	if h.said.Status != metav1.ConditionUnknown || h.said.Reason != v1alpha1.ReasonUnanswered {
		t.Errorf("says %+v", h.said)
	}
	h.answer("5m0s")
	h.clock.Step(7 * time.Second)
	h.timeout = 20 * time.Minute
	if next := h.sync(t.Context()); next != 10*time.Second {
		t.Errorf("renews after %v", next)
	}
	observed, ours := fence.Read(h.lease())
	want := fence.Lease{
		Origin: "hub", Renewal: "jobferry-manager 2026-01-01T12:00:07.000000Z", Renewed: observed.Renewed, Version: observed.Version,
		Duration: 40 * time.Second, LostTimeout: 20 * time.Minute, After: 5 * time.Minute,
	}
	if !ours || observed != want || !observed.Renewed.Equal(noon.Add(7*time.Second)) {
		t.Errorf("Lease %+v", observed)
	}
	if h.said.Status != metav1.ConditionTrue || !strings.Contains(h.said.Message, "5m40s") || !strings.Contains(h.said.Message, "20m0s") {
		t.Errorf("says %+v", h.said)
	}
}

func TestNamespaceIsMadeOnDemand(t *testing.T) {
	h := newHub(t)
	there := false
	h.refuse = func(verb string, obj client.Object) error {
		_, isNamespace := obj.(*corev1.Namespace)
		switch {
		case isNamespace:
			there = true
		case verb == "create" && !there:
			return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, v1alpha1.SystemNamespace)
		}
		return nil
	}
	h.sync(t.Context())
	if h.lease() == nil || !there {
		t.Errorf("writes %v", h.writes)
	}
}

func TestWhatTheConditionSays(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "jobferry-fence-hub", errors.New("no"))
	for name, row := range map[string]struct {
		prepare func(*hub)
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"too late": {func(h *hub) { h.sync(h.t.Context()); h.answer("15m") }, metav1.ConditionFalse, v1alpha1.ReasonFenceTooLate, "--fence-after=15m0s"},
		"forbidden": {func(h *hub) { h.refuse = func(string, client.Object) error { return forbidden } },
			metav1.ConditionFalse, v1alpha1.ReasonLeaseForbidden, "creates the Lease jobferry-fence-hub"},
		"refused by admission": {func(h *hub) {
			h.refuse = func(string, client.Object) error { return apierrors.NewBadRequest("no Leases here") }
		}, metav1.ConditionFalse, v1alpha1.ReasonLeaseRefused, "no Leases here"},
		"built-in": {func(h *hub) { builtIn(&h.view) }, metav1.ConditionFalse, v1alpha1.ReasonNoFence, "may run twice"},
		"removed, and forbidden": {func(h *hub) {
			removing(&h.view)
			h.refuse = func(string, client.Object) error { return forbidden }
		}, metav1.ConditionFalse, v1alpha1.ReasonNoFence, "being removed"},
		"no connection": {func(h *hub) { h.refuse = func(string, client.Object) error { return clusters.ErrNotConnected } }, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			row.prepare(h)
			h.sync(t.Context())
			if h.said.Status != row.status || h.said.Reason != row.reason || !strings.Contains(h.said.Message, row.message) {
				t.Errorf("says %+v", h.said)
			}
		})
	}
}

// The Lease is released with the last mirror, by one request, never deleted, and taken again if the
// worker stays after all.
func TestLeaseIsReleased(t *testing.T) {
	h := newHub(t)
	h.mirrors = []packed.Facts{embeddedMirror()}
	h.sync(t.Context())
	removing(&h.view)
	h.sync(t.Context())
	if l, _ := fence.Read(h.lease()); l.Released {
		t.Fatal("released while there was a mirror")
	}
	h.mirrors = nil
	h.sync(t.Context())
	before := len(h.writes)
	h.sync(t.Context())
	l, _ := fence.Read(h.lease())
	if !l.Released || len(h.writes) != before || h.said.Reason != v1alpha1.ReasonNoFence || slices.Contains(h.writes, "delete") {
		t.Errorf("Lease %+v, writes %v, says %+v", l, h.writes, h.said)
	}
	h.view = aView()
	h.sync(t.Context())
	if l, _ := fence.Read(h.lease()); l.Released {
		t.Error("not taken again")
	}
}

// A worker changes what isn't read of it as often as it likes: nothing is sent for that.
func TestARenewerIsWokenByWhatItReads(t *testing.T) {
	h := newHub(t)
	for i, step := range []struct {
		change func()
		wakes  bool
	}{
		{func() {}, true}, // the first time
		{func() { h.view.Capacity.Unchecked = "Pods" }, false},
		{func() { h.view.Message, h.view.ClockAhead, h.view.Full = "other", time.Hour, true }, false},
		{func() { lost(&h.view) }, true},
		{func() { h.view.Since = h.view.Since.Add(time.Second) }, false},
		{func() { connecting(&h.view) }, true},
		{func() { h.view = aView() }, true},
		{func() { h.timeout = time.Hour }, true},
		{func() { removing(&h.view) }, true},
		{func() { orphan(&h.view) }, true},
		{func() { builtIn(&h.view) }, true},
	} {
		step.change()
		h.changed()
		select {
		case <-h.woken:
			if !step.wakes {
				t.Errorf("step %d wakes", i)
			}
		default:
			if step.wakes {
				t.Errorf("step %d doesn't wake", i)
			}
		}
	}
}

func TestNothingIsSentToALostWorker(t *testing.T) {
	h := newHub(t)
	lost(&h.view)
	h.sync(t.Context())
	if len(h.writes) != 0 || h.said != (metav1.Condition{}) {
		t.Errorf("writes %v, says %+v", h.writes, h.said)
	}
}

func TestOptions(t *testing.T) {
	for name, row := range map[string]struct {
		options Options
		want    string
	}{
		"defaults":         {Options{}, ""},
		"short":            {Options{Duration: time.Second}, ""},
		"parts of seconds": {Options{Duration: 1500 * time.Millisecond}, "whole seconds"},
		"negative":         {Options{Duration: -time.Second}, "whole seconds"},
	} {
		err := row.options.Validate()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// removed is a worker that may be being removed, without a way to list its mirrors.
type removed struct {
	view    clusters.View
	mirrors bool
}

func (r removed) View() clusters.View { return r.view }
func (r removed) HasMirrors() bool    { return r.mirrors }

func TestMayBeReleased(t *testing.T) {
	for _, row := range []struct {
		removed
		want bool
	}{{removed{aView(), false}, false}, {removed{aView(removing), true}, false}, {removed{aView(removing), false}, true}} {
		if mayBeReleased(row) != row.want {
			t.Errorf("with mirrors %t: %t", row.mirrors, !row.want)
		}
	}
}
