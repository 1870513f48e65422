package job

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// carries has workers to which these kinds are carried, and the ConfigMap and the Secret "settings"
// on the hub.
func (w *world) carries(kinds ...v1alpha1.CarriedKind) {
	for _, v := range w.workers {
		v.view.Spec.Carry = kinds
	}
	meta := metav1.ObjectMeta{Namespace: "team", Name: "settings", UID: "settings"}
	for _, err := range []error{
		w.hub.others.Create(w.Context(), &corev1.ConfigMap{ObjectMeta: meta}),
		w.hub.others.Create(w.Context(), &corev1.Secret{ObjectMeta: meta}),
	} {
		if err != nil {
			w.Fatal(err)
		}
	}
}

func refersToSettings(job *batchv1.Job) {
	settings := corev1.LocalObjectReference{Name: "settings"}
	job.Spec.Template.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: settings}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: settings}},
	}
}

// What the shards of a Job need is carried to each worker once, and not in turn for ever.
func TestCarriedToEachShardOnce(t *testing.T) {
	w := newWorld(t)
	w.carries(v1alpha1.CarryConfigMaps, v1alpha1.CarrySecrets)
	w.submits(divisible(16, 12, refersToSettings))
	w.step(time.Minute)
	if !w.running("a") || !w.running("b") {
		w.fail("the shards don't run:\n%s", w.state())
	}
	gets := 0
	w.refuses = func(sent write) error {
		if sent.verb == "get" {
			gets++
		}
		return nil
	}
	w.step(5 * time.Minute)
	if gets > 0 {
		w.fail("%d reads in five minutes in which nothing happens", gets)
	}
}

// A kind that a worker's Jobs get later is carried to those that run, too.
func TestAnotherKindIsCarriedLater(t *testing.T) {
	w := newWorld(t)
	w.carries(v1alpha1.CarryConfigMaps)
	w.submits(aJob("train", refersToSettings))
	w.step(time.Minute)
	if !w.running("a") {
		w.fail("the Job doesn't run:\n%s", w.state())
	}
	a := w.worker("a")
	a.view.Spec.Carry = append(a.view.Spec.Carry, v1alpha1.CarrySecrets)
	w.triggers.WorkerChanged("a")
	w.step(time.Second)
	if err := a.api.others.Get(w.Context(), types.NamespacedName{Namespace: "team", Name: "settings"}, &corev1.Secret{}); err != nil {
		w.fail("%v", err)
	}
}
