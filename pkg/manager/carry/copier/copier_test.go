package copier

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/manager/carry"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// kinds notes what a Copier wants watched.
type kinds []carry.Kind

func (k *kinds) Add(_ context.Context, kind carry.Kind) error {
	if !slices.Contains(*k, kind) {
		*k = append(*k, kind)
	}
	return nil
}

// world is a hub, a worker and a Copier, and a Job that mounts the Secret "x" and runs as the
// ServiceAccount "robot".
type world struct {
	*Copier
	t       *testing.T
	hub     client.Client
	worker  client.Client
	watched *kinds
	clock   *clocktesting.FakePassiveClock
	job     *batchv1.Job
	mirror  *batchv1.Job
	mirrors map[string]*batchv1.Job // in the worker's cache, by name
	memory  Memory
}

type workerCluster struct {
	client  client.Client
	mirrors map[string]*batchv1.Job
}

func (w workerCluster) Name() string { return "w1" }

func (w workerCluster) Client() client.Client { return w.client }

func (w workerCluster) Mirror(key types.NamespacedName) (*batchv1.Job, bool) {
	m, ok := w.mirrors[key.Name]
	return m, ok
}

func newWorld(t *testing.T, hubRules, workerRules interceptor.Funcs) *world {
	w := &world{t: t, watched: &kinds{}, clock: clocktesting.NewFakePassiveClock(noon)}
	w.hub = fake.NewClientBuilder().WithInterceptorFuncs(hubRules).Build()
	w.worker = fake.NewClientBuilder().WithInterceptorFuncs(workerRules).Build()
	w.Copier = &Copier{
		Hub: w.hub, Origin: "hub-1", Tracker: NewTracker(w.clock), Watch: w.watched,
		Registers: func(*corev1.Secret) bool { return false },
	}
	w.job = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train"}}
	w.job.Spec.Template.Spec = corev1.PodSpec{
		ServiceAccountName: "robot",
		Volumes:            []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "x"}}}},
	}
	w.mirror = w.job.DeepCopy()
	w.mirror.UID = "mirror-1"
	return w
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team", Name: name, UID: "source"}
}

func newSecret(name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: named(name), Data: map[string][]byte{"key": []byte(value)}}
}

func (w *world) create(c client.Client, objects ...client.Object) {
	w.t.Helper()
	for _, object := range objects {
		if err := c.Create(w.t.Context(), object); err != nil {
			w.t.Fatal(err)
		}
	}
}

// carry runs Carry; it returns its writes as text.
func (w *world) carry() (string, error) {
	writes, err := w.Carry(w.t.Context(), w.job, w.mirror, []carry.Kind{carry.Secret, carry.ServiceAccount}, workerCluster{w.worker, w.mirrors}, w.memory, noon)
	var texts []string
	for _, write := range writes {
		texts = append(texts, string(write.Operation)+" "+string(write.Kind))
	}
	return strings.Join(texts, ", "), err
}

func (w *world) wants(want string) {
	w.t.Helper()
	got, err := w.carry()
	if err != nil {
		w.t.Fatal(err)
	}
	if got != want {
		w.t.Errorf("wrote %q, want %q", got, want)
	}
}

// value is what the Secret "x" holds in the worker.
func (w *world) value() string {
	var secret corev1.Secret
	if err := w.worker.Get(w.t.Context(), sourceOf("x").NamespacedName, &secret); err != nil {
		w.t.Fatal(err)
	}
	return string(secret.Data["key"])
}

func TestCarry(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, interceptor.Funcs{})
	robot := &corev1.ServiceAccount{ObjectMeta: named("robot"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}, {Name: "x"}}}
	w.create(w.hub, newSecret("x", "a"), newSecret("pull", "b"), robot)
	w.wants("Create Secret, Create ServiceAccount, Create Secret")
	if w.value() != "a" {
		t.Errorf("carried %q", w.value())
	}
	copied, current := w.Tracker.Get(in(train), "mirror-1")
	if !current || len(copied.Seen) != 3 || len(copied.Blocked)+len(copied.Notes) > 0 || !copied.At.Equal(noon) {
		t.Errorf("copied %+v, current %t", copied, current)
	}
	if !slices.Equal(*w.watched, kinds{carry.Secret, carry.ServiceAccount}) {
		t.Errorf("watches %v", *w.watched)
	}
	w.wants("")

	changed := newSecret("x", "c")
	if err := w.hub.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	woken := w.Tracker.SourceChanged(sourceOf("x"), changed.ResourceVersion)
	if after, ok := woken[train]; !ok || after > 0 {
		t.Errorf("woke %v", woken)
	}
	w.wants("Update Secret")
	if w.value() != "c" {
		t.Errorf("carried %q", w.value())
	}

	w.mirror.UID = "mirror-2"
	w.wants("AddOwner Secret, AddOwner ServiceAccount, AddOwner Secret")
}

func TestCarryWhatIsMissing(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, interceptor.Funcs{})
	w.create(w.worker, &corev1.ServiceAccount{ObjectMeta: named("robot")})
	w.wants("")
	copied, current := w.Tracker.Get(in(train), "mirror-1")
	if !current || len(copied.Blocked) != 1 || !strings.Contains(copied.Blocked[0], `secret "x" not found`) {
		t.Errorf("copied %+v, current %t", copied, current)
	}
	late := newSecret("x", "a")
	w.create(w.hub, late)
	w.Tracker.SourceChanged(sourceOf("x"), late.ResourceVersion)
	if _, current := w.Tracker.Get(in(train), "mirror-1"); current {
		t.Error("a source that appears changes nothing")
	}
	w.wants("Create Secret")
}

func TestCarryRecreates(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, interceptor.Funcs{})
	w.job.Spec.Template.Spec.ServiceAccountName = ""
	before := newSecret("x", "a")
	before.Immutable = ptr.To(true)
	w.create(w.hub, before)
	w.wants("Create Secret")
	if err := w.hub.Delete(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	w.create(w.hub, newSecret("x", "b"))
	w.wants("Recreate Secret")
	if w.value() != "b" {
		t.Errorf("carried %q", w.value())
	}
}

var secrets = schema.GroupResource{Resource: "secrets"}

// Somebody else may create, change or delete an object between its being read and written: then
// it's looked at again, with its source.
func TestCarryIsOvertaken(t *testing.T) {
	rows := map[string]struct {
		err   error
		times int
		want  error
	}{
		"created by another Job":  {apierrors.NewAlreadyExists(secrets, "x"), 1, nil},
		"namespace in the making": {apierrors.NewNotFound(secrets, "x"), 2, nil},
		"a conflict":              {apierrors.NewConflict(secrets, "x", nil), maxTries - 1, nil},
		"conflicts for ever":      {apierrors.NewConflict(secrets, "x", nil), maxTries, errContended},
		"refused":                 {apierrors.NewForbidden(secrets, "x", nil), 1, apierrors.NewForbidden(secrets, "x", nil)},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			reads, writes := 0, 0
			w := newWorld(t, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, o, options...)
				},
			}, interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
					if writes++; writes <= row.times {
						return row.err
					}
					return c.Create(ctx, o, options...)
				},
			})
			w.job.Spec.Template.Spec.ServiceAccountName = ""
			w.create(w.hub, newSecret("x", "a"))
			wrote, err := w.carry()
			if reads != writes {
				t.Errorf("%d reads of the source for %d writes", reads, writes)
			}
			_, entered := w.Tracker.Get(in(train), "mirror-1")
			if row.want == nil {
				if err != nil || wrote != "Create Secret" || !entered {
					t.Errorf("wrote %q, entered %t: %v", wrote, entered, err)
				}
				return
			}
			if refused := (*WorkerError)(nil); !errors.As(err, &refused) || refused.Err.Error() != row.want.Error() || entered {
				t.Errorf("entered %t: %v", entered, err)
			}
			if apierrors.IsConflict(err) {
				t.Error("a conflict gets out: no event of the Job will end it")
			}
		})
	}
}

func TestCarryErrorsOfTheHub(t *testing.T) {
	var answer error
	w := newWorld(t, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return answer
		},
	}, interceptor.Funcs{})
	w.job.Spec.Template.Spec.ServiceAccountName = ""

	answer = apierrors.NewServiceUnavailable("down")
	if _, err := w.carry(); err == nil || errors.As(err, new(*WorkerError)) {
		t.Errorf("the hub's error is %v", err)
	}
	answer = apierrors.NewForbidden(secrets, "x", errors.New("RBAC"))
	w.wants("")
	copied, _ := w.Tracker.Get(in(train), "mirror-1")
	if len(copied.Blocked) != 1 || !strings.Contains(copied.Blocked[0], `secret "x" can't be read on the hub`) {
		t.Errorf("copied %+v", copied)
	}
}

func TestCarryErrorsOfTheWorker(t *testing.T) {
	w := newWorld(t, interceptor.Funcs{}, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(secrets, "x", errors.New("RBAC"))
		},
	})
	if _, err := w.carry(); !errors.As(err, new(*WorkerError)) || !apierrors.IsForbidden(err) {
		t.Errorf("the worker's error is %v", err)
	}
}

// readMirrors counts the reads of mirrors.
type readMirrors struct {
	workerCluster
	reads *int
}

func (r readMirrors) Mirror(key types.NamespacedName) (*batchv1.Job, bool) {
	*r.reads++
	return r.workerCluster.Mirror(key)
}

// A worker names one mirror, which takes long to be read, as the owner of an object again and
// again.
func TestAMirrorOfManyOwnersIsReadOnce(t *testing.T) {
	reads := 0
	finished := finishedIn(readMirrors{workerCluster{nil, map[string]*batchv1.Job{"m": {}}}, &reads}, "team")
	for i := range 200 {
		finished(metav1.OwnerReference{Name: "m", UID: types.UID(strconv.Itoa(i))})
	}
	if reads != 1 {
		t.Errorf("%d reads", reads)
	}
}

func TestSpent(t *testing.T) {
	ended := []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	mirrors := map[string]*batchv1.Job{
		"runs":  {ObjectMeta: metav1.ObjectMeta{UID: "1"}},
		"ended": {ObjectMeta: metav1.ObjectMeta{UID: "2"}, Status: batchv1.JobStatus{Conditions: ended}},
	}
	spent := finishedIn(workerCluster{nil, mirrors}, "team")
	for owner, want := range map[metav1.OwnerReference]bool{
		{Name: "runs", UID: "1"}:    false,
		{Name: "ended", UID: "2"}:   true,
		{Name: "ended", UID: "3"}:   false, // another of that name
		{Name: "unknown", UID: "4"}: false, // perhaps not seen yet
	} {
		if spent(owner) != want {
			t.Errorf("%s %s: spent %t", owner.Name, owner.UID, !want)
		}
	}
}
