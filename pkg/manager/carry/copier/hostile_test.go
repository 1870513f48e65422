package copier

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/manager/carry"
)

// counted has a world whose reads, of the hub and the worker together, are counted.
func counted(t *testing.T) (*world, *int) {
	reads := 0
	count := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			reads++
			return c.Get(ctx, key, o, options...)
		},
	}
	return newWorld(t, count, count), &reads
}

func numbered(secrets int) (names []string) {
	for i := range secrets {
		names = append(names, fmt.Sprint("s", i))
	}
	return names
}

// refer has the Job refer to Secrets.
func (w *world) refer(secrets ...string) {
	c := corev1.Container{}
	for _, name := range secrets {
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
	}
	w.job.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{c}}
}

// change writes a Secret on the hub, and shows it to the tracker.
func (w *world) change(name, value string) map[types.NamespacedName]time.Duration {
	w.t.Helper()
	changed := newSecret(name, value)
	if err := w.hub.Update(w.t.Context(), changed); err != nil {
		w.t.Fatal(err)
	}
	return w.Tracker.SourceChanged(sourceOf(name), changed.ResourceVersion)
}

// wantsBlocked wants little to be remembered of the Job but one reason why it waits.
func (w *world) wantsBlocked(reason string, seen int) {
	w.t.Helper()
	copied, current := w.Tracker.Get(in(train), "mirror-1")
	if len(copied.Blocked) != 1 || !strings.Contains(copied.Blocked[0], reason) || len(copied.Blocked[0]) > 200 {
		w.t.Errorf("blocked: %.500q", copied.Blocked)
	}
	if !current || len(copied.Seen) != seen || len(w.Tracker.users) != seen || len(copied.said)+w.Tracker.counted > 0 {
		w.t.Errorf("current: %t; seen: %d, references: %d", current, len(copied.Seen), len(w.Tracker.users))
	}
}

// Of a tenant's Job with very many references nothing is carried along, and it says so. It goes on
// when they are fewer.
func TestAFloodOfReferences(t *testing.T) {
	w, reads := counted(t)
	w.refer(numbered(80_000)...)
	w.wants("")
	w.wantsBlocked("more than 256 objects", 0)
	if *reads > 0 {
		t.Errorf("%d reads", *reads)
	}
	w.refer("s0")
	w.job.Spec.Template.Spec.ServiceAccountName = "robot"
	robot := &corev1.ServiceAccount{ObjectMeta: named("robot")}
	for _, name := range numbered(30_000) {
		robot.ImagePullSecrets = append(robot.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	w.create(w.hub, newSecret("s0", "a"), robot)
	*reads = 0
	w.wants("Create Secret")
	w.wantsBlocked("more than 256 objects", 1)
	if *reads > 4 {
		t.Errorf("%d reads", *reads)
	}
	robot.ImagePullSecrets = robot.ImagePullSecrets[:2]
	if err := w.hub.Update(t.Context(), robot); err != nil {
		t.Fatal(err)
	}
	account := Source{carry.ServiceAccount, types.NamespacedName{Namespace: "team", Name: "robot"}}
	if after, woken := w.Tracker.SourceChanged(account, robot.ResourceVersion)[train]; !woken || after > 0 {
		t.Errorf("woken: %t, after %s", woken, after)
	}
	w.wants("Create ServiceAccount")
	if copied, current := w.Tracker.Get(in(train), "mirror-1"); !current || len(copied.Blocked) > 0 || len(copied.Seen) != 3 {
		t.Errorf("current: %t, %+v", current, copied)
	}
}

// API servers don't check the names that all kinds of references have.
func TestNamesThatNoObjectHas(t *testing.T) {
	for _, name := range []string{"a/b", "..", "%", strings.Repeat("x", 1<<20)} {
		w, reads := counted(t)
		w.refer("x", name)
		w.wants("")
		w.wantsBlocked("no object can have that name", 0)
		if *reads > 0 {
			t.Errorf("%d reads of %.10s", *reads, name)
		}
		w.refer()
		w.job.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: name}}
		w.wants("")
		if copied, current := w.Tracker.Get(in(train), "mirror-1"); !current || len(copied.Blocked)+len(copied.Seen)+*reads > 0 {
			t.Errorf("current: %t, %d reads, blocked: %.500q", current, *reads, copied.Blocked)
		}
	}
}

// A tenant who changes one object again and again has that looked at, and not all the others.
func TestOneChangeIsLookedAtAsOne(t *testing.T) {
	w, reads := counted(t)
	names := numbered(carry.MaxReferences)
	w.refer(names...)
	for _, name := range names {
		w.create(w.hub, newSecret(name, "a"))
	}
	if _, err := w.carry(); err != nil {
		t.Fatal(err)
	}
	*reads = 0
	w.change("s7", "b")
	w.wants("Update Secret")
	copied, current := w.Tracker.Get(in(train), "mirror-1")
	if *reads != 2 || !current || len(copied.Seen) != carry.MaxReferences {
		t.Errorf("%d reads, current: %t, %d sources", *reads, current, len(copied.Seen))
	}
}

// An imagePullSecret of a ServiceAccount that changes together with a reference is copied, too.
func TestChangedPullSecret(t *testing.T) {
	w, reads := counted(t)
	robot := &corev1.ServiceAccount{ObjectMeta: named("robot"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}}
	w.create(w.hub, newSecret("x", "a"), newSecret("pull", "a"), robot)
	w.wants("Create Secret, Create ServiceAccount, Create Secret")
	*reads = 0
	w.change("x", "b")
	w.change("pull", "b")
	w.wants("Update Secret, Update Secret")
	if copied, _ := w.Tracker.Get(in(train), "mirror-1"); *reads != 4 || len(copied.Seen) != 3 {
		t.Errorf("%d reads: %+v", *reads, copied)
	}
	robot.ImagePullSecrets[0].Name = "other"
	if err := w.hub.Update(t.Context(), robot); err != nil {
		t.Fatal(err)
	}
	w.Tracker.SourceChanged(Source{carry.ServiceAccount, types.NamespacedName{Namespace: "team", Name: "robot"}}, robot.ResourceVersion)
	w.wants("Update ServiceAccount")
	if len(w.Tracker.users) != 3 || w.Tracker.users[sourceOf("pull")] != nil {
		t.Errorf("the Job depends on %v", w.Tracker.users)
	}
}

// A tenant has one object that very many Jobs refer to, and changes it all the time: they're looked
// at one after the other, each once for several changes, and a Job of another namespace at once.
func TestAChangeOfManyJobsIsSpreadOverTime(t *testing.T) {
	const jobs = 10 * burst
	clock := clocktesting.NewFakePassiveClock(noon)
	tracker := NewTracker(clock)
	place := func(i int) Place {
		return in(types.NamespacedName{Namespace: "greedy", Name: fmt.Sprint(i)})
	}
	see := func(i int, source Source, version string) {
		tracker.Track(place(i), source)
		tracker.Record(place(i), Copied{Mirror: "mirror", Seen: map[Source]string{source: version}, At: clock.Now()})
	}
	hot, honest := Source{carry.ConfigMap, types.NamespacedName{Namespace: "greedy", Name: "hot"}}, sourceOf("x")
	for i := range jobs {
		see(i, hot, "1")
	}
	version, looks := 1, 0
	for range 20 { // a second
		version++
		tracker.SourceChanged(hot, fmt.Sprint(version))
		for i := range jobs {
			if _, current := tracker.Get(place(i), "mirror"); !current {
				looks++
				see(i, hot, fmt.Sprint(version))
			}
		}
		clock.SetTime(clock.Now().Add(50 * time.Millisecond))
	}
	if most := burst + int(time.Second/interval); looks < most/2 || looks > most {
		t.Errorf("%d looks in a second, want at most %d", looks, most)
	}
	tracker.Track(in(train), honest)
	if after, woken := tracker.SourceChanged(honest, "7")[train]; !woken || after > 0 {
		t.Errorf("another namespace's is woken: %t, after %s", woken, after)
	}
	clock.SetTime(clock.Now().Add(jobs * interval))
	for i := range jobs {
		copied, current := tracker.Get(place(i), "mirror")
		if latest := copied.Seen[hot] == fmt.Sprint(version); current != latest {
			t.Fatalf("Job %d has version %s of %d, current: %t", i, copied.Seen[hot], version, current)
		}
	}
}

// A namespace with very many references leaves room for those of others, and memory. A Job with few
// of them always goes on.
func TestANamespaceLeavesReferencesToOthers(t *testing.T) {
	before := heap()
	tracker := NewTracker(clocktesting.NewFakePassiveClock(noon))
	greedy, sources := 0, 0
	for ; ; greedy++ {
		place := in(types.NamespacedName{Namespace: "greedy", Name: fmt.Sprint(greedy)})
		copied := Copied{Mirror: "mirror", Seen: map[Source]string{}, said: map[Source]remark{}}
		var refs []Source
		for i := range carry.MaxReferences {
			name := fmt.Sprintf("%d-%d-%s", greedy, i, strings.Repeat("x", 240))
			refs = append(refs, Source{carry.Secret, types.NamespacedName{Namespace: "greedy", Name: name}})
			copied.Seen[refs[i]] = "12345678"
			copied.said[refs[i]] = remarkOf(refs[i].ref(), fmt.Sprintf("%s not found: create it on the hub in namespace greedy, or make the reference to it optional", refs[i].ref()), "")
		}
		if !tracker.Track(place, refs...) {
			break
		}
		tracker.Record(place, copied)
		sources += len(refs)
	}
	if most := maxCounted / (share + 1); tracker.counted > most || tracker.counted < most-carry.MaxReferences {
		t.Errorf("%d references count of one namespace, at most %d may", tracker.counted, most)
	}
	taken := (heap() - before) >> 20
	t.Logf("%d references of %d Jobs take %d MiB", sources, greedy, taken)
	if taken > 32 {
		t.Errorf("they take %d MiB", taken)
	}
	for i := range 10 {
		few := in(types.NamespacedName{Namespace: "greedy", Name: fmt.Sprint("few-", i)})
		if !tracker.Track(few, sourceOf("x"), sourceOf("y")) {
			t.Fatal("a Job with few references gets none")
		}
	}
	if !tracker.Track(in(train), refsOf(carry.MaxReferences)...) {
		t.Error("another namespace gets none")
	}
	tracker.Forget(types.NamespacedName{Namespace: "greedy", Name: "0"})
	if !tracker.Track(in(types.NamespacedName{Namespace: "greedy", Name: "next"}), refsOf(carry.MaxReferences)...) {
		t.Error("what is gone still counts")
	}
}

// What is missing is remembered without a text of its own for each object: the references that
// don't count take some KiB for each Job, however long their names are.
func TestMissingObjectsOfLongNames(t *testing.T) {
	const jobs = 2000
	before := heap()
	tracker := NewTracker(clocktesting.NewFakePassiveClock(noon))
	for i := range jobs {
		place := in(types.NamespacedName{Namespace: "greedy", Name: fmt.Sprint(i)})
		copied := Copied{Mirror: "mirror", Seen: map[Source]string{}, said: map[Source]remark{}, At: noon}
		var refs []Source
		for k := range uncounted {
			refs = append(refs, sourceOf(fmt.Sprintf("%0253d", i*uncounted+k)))
			copied.Seen[refs[k]] = ""
			copied.said[refs[k]] = remarkOf(refs[k].ref(), refs[k].ref().String()+" not found: create it on the hub in namespace team, or make the reference to it optional", "")
		}
		if !tracker.Track(place, refs...) {
			t.Fatal("few references are refused")
		}
		tracker.Record(place, copied)
	}
	if each := (heap() - before) / jobs; each > 9<<10 {
		t.Errorf("they take %d bytes for each Job", each)
	}
	copied, _ := tracker.Get(in(types.NamespacedName{Namespace: "greedy", Name: "7"}), "mirror")
	if len(copied.Blocked) != uncounted || !strings.HasPrefix(copied.Blocked[0], `secret "000`) || !strings.Contains(copied.Blocked[0], `56" not found: create it`) {
		t.Errorf("%d block: %.400q", len(copied.Blocked), copied.Blocked)
	}
}

func refsOf(secrets int) (sources []Source) {
	for _, name := range numbered(secrets) {
		sources = append(sources, sourceOf(name))
	}
	return sources
}

// heap is what is in use, after a collection.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
