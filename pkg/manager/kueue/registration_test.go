package kueue

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// cluster is a MultiKueueCluster whose Secret is there, and that isn't registered yet.
func cluster(edits ...func(*remote)) *remote {
	r := &remote{
		now: noon, kueueNamespace: "kueue-system", namespace: "jobferry-system",
		cluster: &kueue.MultiKueueCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "uid", Labels: map[string]string{"region": "eu"}},
			Spec: kueue.MultiKueueClusterSpec{ClusterSource: kueue.ClusterSource{
				KubeConfig: &kueue.KubeConfig{Location: "secret", LocationType: kueue.SecretLocationType},
			}},
		},
		secret: secret("secret", "one"),
	}
	for _, e := range edits {
		e(r)
	}
	return r
}

func secret(name, kubeconfig string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{v1alpha1.KubeconfigKey: []byte(kubeconfig)}}
}

func copied(kubeconfig string) func(*remote) {
	return func(r *remote) {
		r.copy = secret("w1", kubeconfig)
		r.copy.Annotations = map[string]string{v1alpha1.AnnotationMultiKueueCluster: "w1"}
	}
}

func byHand(r *remote) { r.copy = secret("w1", "own") }

func working(r *remote) {
	r.worker = &v1alpha1.WorkerCluster{Status: v1alpha1.WorkerClusterStatus{Conditions: []metav1.Condition{inTouch}}}
}

func from(s kueue.ClusterSource) func(*remote) {
	return func(r *remote) { r.cluster.Spec.ClusterSource, r.secret = s, nil }
}

func TestDecideCluster(t *testing.T) {
	leaving := metav1.NewTime(noon)
	for _, tc := range []struct {
		name           string
		given          *remote
		create, update bool
		reason         string // of Active
	}{
		{"new", cluster(), true, false, v1alpha1.ReasonConnecting},
		{"registered", cluster(copied("one"), working), false, false, v1alpha1.ReasonActive},
		{"rotated", cluster(copied("old"), working), false, true, v1alpha1.ReasonActive},
		{"registered by hand", cluster(byHand, working), false, false, v1alpha1.ReasonActive},
		{"registered by hand, path", cluster(byHand, working, from(kueue.ClusterSource{
			KubeConfig: &kueue.KubeConfig{Location: "/etc", LocationType: kueue.PathLocationType},
		})), false, false, v1alpha1.ReasonActive},
		{"worker away", cluster(copied("one"), func(r *remote) {
			r.worker = &v1alpha1.WorkerCluster{Status: v1alpha1.WorkerClusterStatus{Conditions: []metav1.Condition{away}}}
		}), false, false, "Reason"},
		{"path", cluster(from(kueue.ClusterSource{
			KubeConfig: &kueue.KubeConfig{Location: "/etc", LocationType: kueue.PathLocationType},
		})), false, false, v1alpha1.ReasonUnsupportedSource},
		{"profile", cluster(from(kueue.ClusterSource{ClusterProfileRef: &kueue.ClusterProfileReference{Name: "p"}})), false, false, v1alpha1.ReasonUnsupportedSource},
		{"nothing", cluster(from(kueue.ClusterSource{})), false, false, v1alpha1.ReasonUnsupportedSource},
		{"no Secret", cluster(func(r *remote) { r.secret = nil }), false, false, v1alpha1.ReasonSecretMissing},
		{"Secret forbidden", cluster(func(r *remote) { r.secret, r.secretTrouble = nil, "forbidden" }), false, false, v1alpha1.ReasonSecretMissing},
		{"no key", cluster(func(r *remote) { r.secret.Data = nil }), false, false, v1alpha1.ReasonKubeconfigMissing},
		{"Secret gone, copy there", cluster(copied("one"), working, func(r *remote) { r.secret = nil }), false, false, v1alpha1.ReasonSecretMissing},
		{"copy is going", cluster(copied("one"), working, func(r *remote) { r.copy.DeletionTimestamp = &leaving }), false, false, v1alpha1.ReasonRemoving},
		{"cluster is going", cluster(func(r *remote) { r.cluster.DeletionTimestamp = &leaving }), false, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := decideCluster(tc.given)
			if (d.create != nil) != tc.create || (d.update != nil) != tc.update {
				t.Errorf("create %v, update %v", d.create, d.update)
			}
			reason := ""
			if d.active != nil {
				reason = d.active.Reason
			}
			if reason != tc.reason {
				t.Errorf("Active is %q, want %q", reason, tc.reason)
			}
		})
	}
}

// The copy registers a worker, carries the cluster's labels, and goes with the cluster.
func TestCopy(t *testing.T) {
	made := decideCluster(cluster()).create
	if made.Namespace != "jobferry-system" || made.Name != "w1" || made.Labels[v1alpha1.LabelWorkerCluster] != "true" || made.Labels["region"] != "eu" {
		t.Errorf("made %+v", made.ObjectMeta)
	}
	if len(made.OwnerReferences) != 1 || made.OwnerReferences[0].UID != "uid" {
		t.Errorf("owners: %v", made.OwnerReferences)
	}
}

// What somebody else wrote over our condition stays for a while: nobody fights over it.
func TestYield(t *testing.T) {
	other := metav1.Condition{Type: kueue.MultiKueueClusterActive, Status: metav1.ConditionFalse, Reason: "ClientConnectionFailed"}
	contested := func(since time.Duration) *remote {
		return cluster(copied("one"), working, func(r *remote) {
			r.written, r.writtenAt = r.active(nil), noon.Add(-since)
			r.cluster.Status.Conditions = []metav1.Condition{other}
		})
	}
	if d := decideCluster(contested(time.Second)); d.active != nil || d.again != yield-time.Second {
		t.Errorf("right after: %+v", d)
	}
	if d := decideCluster(contested(2 * yield)); d.active == nil {
		t.Error("after a while it isn't written")
	}
}

func TestDecideActive(t *testing.T) {
	good, bad := usability{Worker: "w1"}, usability{Worker: "w2", Trouble: "Unreachable"}
	for _, tc := range []struct {
		name    string
		gate    gate
		workers []usability
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		{"all", gate{}, []usability{good}, metav1.ConditionTrue, v1alpha1.ReasonActive, "1 of 1"},
		{"some", gate{}, []usability{good, bad}, metav1.ConditionTrue, v1alpha1.ReasonSomeActive, "w2: Unreachable"},
		{"none", gate{}, []usability{bad}, metav1.ConditionFalse, v1alpha1.ReasonNoUsable, "w2: Unreachable"},
		{"bad config", gate{Problem: "no config"}, nil, metav1.ConditionFalse, v1alpha1.ReasonBadConfig, "no config"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decideActive(tc.gate, tc.workers)
			if got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %s %s %q", got.Status, got.Reason, got.Message)
			}
		})
	}
}

func TestGateOf(t *testing.T) {
	ref := &kueue.AdmissionCheckParametersReference{APIGroup: "kueue.x-k8s.io", Kind: "MultiKueueConfig", Name: "c"}
	config := &kueue.MultiKueueConfig{Spec: kueue.MultiKueueConfigSpec{Clusters: []string{"w1"}}}
	for name, tc := range map[string]struct {
		parameters *kueue.AdmissionCheckParametersReference
		config     *kueue.MultiKueueConfig
		problem    string
	}{
		"good":      {ref, config, ""},
		"none":      {nil, nil, "spec.parameters isn't set"},
		"not there": {ref, nil, "there is no MultiKueueConfig \"c\""},
		"wrong":     {&kueue.AdmissionCheckParametersReference{APIGroup: "kueue.x-k8s.io", Kind: "Other", Name: "c"}, nil, "it must be a MultiKueueConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gateOf(&kueue.AdmissionCheck{Spec: kueue.AdmissionCheckSpec{Parameters: tc.parameters}}, tc.config)
			if !strings.Contains(g.Problem, tc.problem) || (tc.problem == "") != (g.Problem == "") {
				t.Errorf("problem %q, want %q", g.Problem, tc.problem)
			}
			if g.Workers == nil || (len(g.Workers) > 0) != (tc.problem == "") {
				t.Errorf("workers %v", g.Workers)
			}
		})
	}
}
