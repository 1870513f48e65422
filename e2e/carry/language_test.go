package carry_test

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// ferry is the test language of the dispatcher, with verbs for what is carried.
type ferry struct {
	*ferrytest.Ferry
	t *testing.T
}

func ferryFor(t *testing.T) ferry {
	t.Helper()
	f := ferry{ferrytest.For(t), t}
	f.LeaveWorker("w1")
	f.LeaveWorker("w2")
	return f
}

const carryAll = `{"carry":["ConfigMap","Secret","Service","ServiceAccount"]}`

// allow registers both workers, and has everything carried to them. Jobs go to w1 unless it can't
// take them.
func (f ferry) allow() {
	f.t.Helper()
	f.Register("w1", "w2")
	f.set("w1", `{"weight":1000}`)
	f.set("w1", carryAll)
	f.set("w2", carryAll)
}

// set changes the spec of a WorkerCluster, and waits until the manager has seen that.
func (f ferry) set(worker, spec string) {
	f.t.Helper()
	f.SetWorker(worker, spec)
	f.WorkerUntil(worker, ferrytest.Observed)
}

func (f ferry) configMap(in *rig.Cluster, name, value string) {
	f.t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
	_, err := in.Client().CoreV1().ConfigMaps(f.NS).Create(f.Context(), object, metav1.CreateOptions{})
	f.check(err)
}

func (f ferry) secret(in *rig.Cluster, name, value string, edits ...func(*corev1.Secret)) {
	f.t.Helper()
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"key": value}}
	for _, edit := range edits {
		edit(object)
	}
	_, err := in.Client().CoreV1().Secrets(f.NS).Create(f.Context(), object, metav1.CreateOptions{})
	f.check(err)
}

// change sets the value of a ConfigMap in a cluster.
func (f ferry) change(in *rig.Cluster, name, value string) {
	f.t.Helper()
	_, err := in.Client().CoreV1().ConfigMaps(f.NS).Patch(f.Context(), name, types.MergePatchType,
		[]byte(`{"data":{"key":"`+value+`"}}`), metav1.PatchOptions{})
	f.check(err)
}

func (f ferry) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f ferry) configMapUntil(worker, name string, holds func(*corev1.ConfigMap) bool) *corev1.ConfigMap {
	f.t.Helper()
	return until(f, worker, "configmaps", name, holds)
}

func (f ferry) secretUntil(worker, name string, holds func(*corev1.Secret) bool) *corev1.Secret {
	f.t.Helper()
	return until(f, worker, "secrets", name, holds)
}

func (f ferry) serviceUntil(worker, name string, holds func(*corev1.Service) bool) *corev1.Service {
	f.t.Helper()
	return until(f, worker, "services", name, holds)
}

func until[T runtime.Object](f ferry, worker, resource, name string, holds func(T) bool) T {
	f.t.Helper()
	watched := rig.Object(f.Cluster(worker).Client().CoreV1().RESTClient(), resource, f.NS, name)
	return f.Until(watched, func(o runtime.Object) bool {
		object, ok := o.(T)
		return ok && holds(object)
	}).(T)
}

// gone waits until a worker has no such object any more.
func (f ferry) gone(worker, resource, name string) {
	f.t.Helper()
	f.Until(rig.Object(f.Cluster(worker).Client().CoreV1().RESTClient(), resource, f.NS, name), rig.Gone)
}

// lacks fails if a worker has such a ConfigMap now.
func (f ferry) lacks(worker, name string) {
	f.t.Helper()
	_, err := f.Cluster(worker).Client().CoreV1().ConfigMaps(f.NS).Get(f.Context(), name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		f.t.Errorf("worker %s has a ConfigMap %s (error %v)", worker, name, err)
	}
}

func configMapIs(value string) func(*corev1.ConfigMap) bool {
	return func(c *corev1.ConfigMap) bool { return c.Data["key"] == value }
}

func secretIs(value string) func(*corev1.Secret) bool {
	return func(s *corev1.Secret) bool { return string(s.Data["key"]) == value }
}

// owners are the names of an object's owners, sorted.
func owners(o metav1.Object) []string {
	var names []string
	for _, owner := range o.GetOwnerReferences() {
		names = append(names, owner.Name)
	}
	slices.Sort(names)
	return names
}

func ownedBy(names ...string) func(*corev1.ConfigMap) bool {
	return func(c *corev1.ConfigMap) bool { return slices.Equal(owners(c), names) }
}

// withConfigMap lets the container have its variables from a ConfigMap.
func withConfigMap(name string, optional bool) rigtest.Option {
	return withEnv(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: name}, Optional: ptr.To(optional),
	}})
}

func withSubdomain(name string) rigtest.Option {
	return func(j *batchv1.Job) { j.Spec.Template.Spec.Subdomain = name }
}

func withEnv(from corev1.EnvFromSource) rigtest.Option {
	return func(j *batchv1.Job) {
		main := &j.Spec.Template.Spec.Containers[0]
		main.EnvFrom = append(main.EnvFrom, from)
	}
}

// withVolume mounts something.
func withVolume(source corev1.VolumeSource) rigtest.Option {
	return func(j *batchv1.Job) {
		spec := &j.Spec.Template.Spec
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
		spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "v", MountPath: "/v"})
	}
}

// withSecret mounts a Secret.
func withSecret(name string) rigtest.Option {
	return withVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}})
}

// withClaim mounts a PersistentVolumeClaim.
func withClaim(name string) rigtest.Option {
	return withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
}

// as runs the Pods with a ServiceAccount.
func as(account string) rigtest.Option {
	return func(j *batchv1.Job) { j.Spec.Template.Spec.ServiceAccountName = account }
}

func suspended(j *batchv1.Job) bool { return ptr.Deref(j.Spec.Suspend, false) }
