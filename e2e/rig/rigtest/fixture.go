package rigtest

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/e2e/rig"
)

// timeLimit ends a test that hangs. It says nothing about speed: a loaded machine takes a multiple
// of the time that a test takes alone.
const timeLimit = 10 * time.Minute

// Fixture is what one test does with the clusters.
type Fixture struct {
	t   testing.TB
	ctx context.Context
}

// For starts the package's clusters if need be, and returns the fixture of a test.
func For(t testing.TB) *Fixture {
	t.Helper()
	if _, err := clusters(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	t.Cleanup(cancel)
	return &Fixture{t: t, ctx: ctx}
}

// Allow gives the test another time limit, from now on. It's to be called before anything waits.
func (f *Fixture) Allow(limit time.Duration) {
	ctx, cancel := context.WithTimeout(f.t.Context(), limit)
	f.t.Cleanup(cancel)
	f.ctx = ctx
}

// Context ends with the test or its time limit.
func (f *Fixture) Context() context.Context { return f.ctx }

// Cluster is one of the clusters given to Main, by name.
func (f *Fixture) Cluster(name string) *rig.Cluster {
	f.t.Helper()
	byName, _ := clusters()
	c := byName[name]
	if c == nil {
		f.t.Fatalf("Main was given no cluster %q", name)
	}
	return c
}

// Namespace makes a namespace of the same fresh name in each of the clusters, in which Pods can be
// created at once. It goes away after the test.
func (f *Fixture) Namespace(in ...*rig.Cluster) string {
	f.t.Helper()
	return f.LabelledNamespace(nil, in...)
}

// LabelledNamespace makes one with labels.
func (f *Fixture) LabelledNamespace(labels map[string]string, in ...*rig.Cluster) string {
	f.t.Helper()
	if len(in) == 0 {
		f.t.Fatal("Namespace needs a cluster")
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namePrefix(f.t.Name()), Labels: labels}}
	for _, c := range in {
		made, err := c.Client().CoreV1().Namespaces().Create(f.ctx, ns, metav1.CreateOptions{})
		if err != nil {
			f.t.Fatal(err)
		}
		// the same in the next cluster
		ns = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: made.Name, Labels: labels}}
		f.t.Cleanup(func() { f.leave(c, made.Name) })
		account := rig.Object(c.Client().CoreV1().RESTClient(), "serviceaccounts", made.Name, "default")
		f.until(account, rig.Exists)
	}
	return ns.Name
}

// namePrefix makes the start of a namespace's name out of a test's.
func namePrefix(test string) string {
	name := strings.ToLower(test[strings.LastIndex(test, "/")+1:])
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.TrimPrefix(name, "test"))
	return strings.Trim(name[:min(len(name), 40)], "-") + "-"
}

// leave reports what is in the namespace of a failed test, and removes it without waiting.
func (f *Fixture) leave(c *rig.Cluster, namespace string) {
	// the test's own has ended
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if f.t.Failed() {
		state, err := c.Kubectl(ctx, "", "get", "jobs,pods,events", "-o", "wide", "-n", namespace)
		f.t.Logf("namespace %s in %s (error %v):\n%s", namespace, c.Name(), err, state)
	}
	if err := c.Client().CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil {
		f.t.Logf("namespace %s in %s: %v", namespace, c.Name(), err)
	}
}

// Create creates a Job.
func (f *Fixture) Create(c *rig.Cluster, job *batchv1.Job) *batchv1.Job {
	f.t.Helper()
	made, err := c.Client().BatchV1().Jobs(job.Namespace).Create(f.ctx, job, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return made
}

// Apply applies YAML manifests by kubectl's server-side apply.
func (f *Fixture) Apply(c *rig.Cluster, namespace, manifests string) {
	f.t.Helper()
	f.Kubectl(c, manifests, "apply", "--server-side", "-n", namespace, "-f", "-")
}

// Kubectl runs kubectl, and returns its output.
func (f *Fixture) Kubectl(c *rig.Cluster, input string, args ...string) string {
	f.t.Helper()
	out, err := c.Kubectl(f.ctx, input, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

// AwaitCRDs waits until an API server serves some CustomResourceDefinitions.
func (f *Fixture) AwaitCRDs(c *rig.Cluster, names ...string) {
	f.t.Helper()
	if err := c.AwaitCRDs(f.ctx, names...); err != nil {
		f.t.Fatal(err)
	}
}

// JobUntil waits until a condition holds for a Job, and returns the Job as it was then.
func (f *Fixture) JobUntil(c *rig.Cluster, namespace, name string, condition func(*batchv1.Job) bool) *batchv1.Job {
	f.t.Helper()
	watched := rig.Object(c.Client().BatchV1().RESTClient(), "jobs", namespace, name)
	return f.until(watched, func(o runtime.Object) bool {
		job, ok := o.(*batchv1.Job)
		return ok && condition(job)
	}).(*batchv1.Job)
}

// JobGone waits until a Job doesn't exist.
func (f *Fixture) JobGone(c *rig.Cluster, namespace, name string) {
	f.t.Helper()
	f.until(rig.Object(c.Client().BatchV1().RESTClient(), "jobs", namespace, name), rig.Gone)
}

// Until waits until a condition holds for something of any kind.
func (f *Fixture) Until(watched rig.Watched, condition rig.Condition) runtime.Object {
	f.t.Helper()
	return f.until(watched, condition)
}

func (f *Fixture) until(watched rig.Watched, condition rig.Condition) runtime.Object {
	f.t.Helper()
	o, err := watched.Until(f.ctx, condition)
	if err != nil {
		f.t.Fatal(err)
	}
	return o
}
