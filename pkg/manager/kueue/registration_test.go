package kueue

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// cluster is a MultiKueueCluster whose Secret is there, and that isn't registered yet.
func cluster(edits ...func(*clusterSnapshot)) *clusterSnapshot {
	s := &clusterSnapshot{
		kueueNamespace: "kueue-system", namespace: "jobferry-system",
		cluster: &kueue.MultiKueueCluster{
			ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "uid", Labels: map[string]string{"region": "eu"}},
			Spec: kueue.MultiKueueClusterSpec{ClusterSource: kueue.ClusterSource{
				KubeConfig: &kueue.KubeConfig{Location: "secret", LocationType: kueue.SecretLocationType},
			}},
		},
		secret: secret("secret", "one"),
	}
	for _, e := range edits {
		e(s)
	}
	return s
}

func secret(name, kubeconfig string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelMultiKueueKubeconfig: "true"}}, Data: map[string][]byte{v1alpha1.KubeconfigKey: []byte(kubeconfig)}}
}

func registered(kubeconfig string) func(*clusterSnapshot) {
	return func(s *clusterSnapshot) {
		s.registration = secret("w1", kubeconfig)
		s.registration.Annotations = map[string]string{v1alpha1.AnnotationMultiKueueCluster: "w1"}
	}
}

func byHand(s *clusterSnapshot) { s.registration = secret("w1", "own") }

func working(s *clusterSnapshot) {
	s.worker = &v1alpha1.WorkerCluster{Status: v1alpha1.WorkerClusterStatus{Conditions: []metav1.Condition{reachable}}}
}

func from(source kueue.ClusterSource) func(*clusterSnapshot) {
	return func(s *clusterSnapshot) { s.cluster.Spec.ClusterSource, s.secret = source, nil }
}

func unlabeled(s *clusterSnapshot) { s.secret.Labels = nil }

// Who names any Secret of Kueue's namespace gets no worker, and doesn't learn whether it's there.
func TestSecretsWithoutTheLabel(t *testing.T) {
	for _, value := range []string{"", "false", "True"} {
		there := cluster(func(s *clusterSnapshot) {
			s.secret.Labels = map[string]string{v1alpha1.LabelMultiKueueKubeconfig: value}
		})
		missing := cluster(func(s *clusterSnapshot) { s.secret = nil })
		p, other := decideCluster(there), decideCluster(missing)
		if p.create != nil || p.update != nil || *p.active != *other.active || !strings.Contains(p.active.Message, "label secret secret jobferry.dev/multikueue-kubeconfig=true") {
			t.Errorf("%q: %+v, says %+v", value, p, p.active)
		}
	}
}

func TestDecideCluster(t *testing.T) {
	leaving := metav1.NewTime(noon)
	for _, tc := range []struct {
		name           string
		given          *clusterSnapshot
		create, update bool
		reason         string // of Active
	}{
		{"new", cluster(), true, false, v1alpha1.ReasonConnecting},
		{"registered", cluster(registered("one"), working), false, false, v1alpha1.ReasonActive},
		{"rotated", cluster(registered("old"), working), false, true, v1alpha1.ReasonActive},
		{"registered by hand", cluster(byHand, working), false, false, v1alpha1.ReasonActive},
		{"registered by hand, path", cluster(byHand, working, from(kueue.ClusterSource{
			KubeConfig: &kueue.KubeConfig{Location: "/etc", LocationType: kueue.PathLocationType},
		})), false, false, v1alpha1.ReasonActive},
		{"worker unreachable", cluster(registered("one"), func(s *clusterSnapshot) {
			s.worker = &v1alpha1.WorkerCluster{Status: v1alpha1.WorkerClusterStatus{Conditions: []metav1.Condition{unreachable}}}
		}), false, false, "Reason"},
		{"path", cluster(from(kueue.ClusterSource{
			KubeConfig: &kueue.KubeConfig{Location: "/etc", LocationType: kueue.PathLocationType},
		})), false, false, v1alpha1.ReasonUnsupportedSource},
		{"profile", cluster(from(kueue.ClusterSource{ClusterProfileRef: &kueue.ClusterProfileReference{Name: "p"}})), false, false, v1alpha1.ReasonUnsupportedSource},
		{"nothing", cluster(from(kueue.ClusterSource{})), false, false, v1alpha1.ReasonUnsupportedSource},
		{"no Secret", cluster(func(s *clusterSnapshot) { s.secret = nil }), false, false, v1alpha1.ReasonSecretMissing},
		{"any Secret", cluster(unlabeled), false, false, v1alpha1.ReasonSecretMissing},
		{"any Secret, after another one", cluster(registered("other"), working, unlabeled), false, false, v1alpha1.ReasonSecretMissing},
		{"Secret forbidden", cluster(func(s *clusterSnapshot) { s.secret, s.secretProblem = nil, "forbidden" }), false, false, v1alpha1.ReasonSecretMissing},
		{"no key", cluster(func(s *clusterSnapshot) { s.secret.Data = nil }), false, false, v1alpha1.ReasonKubeconfigMissing},
		{"Secret gone, still registered", cluster(registered("one"), working, func(s *clusterSnapshot) { s.secret = nil }), false, false, v1alpha1.ReasonSecretMissing},
		{"registration is being deleted", cluster(registered("one"), working, func(s *clusterSnapshot) { s.registration.DeletionTimestamp = &leaving }), false, false, v1alpha1.ReasonRemoving},
		{"cluster is being deleted", cluster(func(s *clusterSnapshot) { s.cluster.DeletionTimestamp = &leaving }), false, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := decideCluster(tc.given)
			if (p.create != nil) != tc.create || (p.update != nil) != tc.update {
				t.Errorf("create %v, update %v", p.create, p.update)
			}
			reason := ""
			if p.active != nil {
				reason = p.active.Reason
			}
			if reason != tc.reason {
				t.Errorf("Active is %q, want %q", reason, tc.reason)
			}
		})
	}
}

// The registration has the cluster's labels, and is deleted with the cluster.
func TestNewRegistration(t *testing.T) {
	made := decideCluster(cluster()).create
	if made.Namespace != "jobferry-system" || made.Name != "w1" || made.Labels[v1alpha1.LabelWorkerCluster] != "true" || made.Labels["region"] != "eu" {
		t.Errorf("made %+v", made.ObjectMeta)
	}
	if len(made.OwnerReferences) != 1 || made.OwnerReferences[0].UID != "uid" {
		t.Errorf("owners: %v", made.OwnerReferences)
	}
}

func TestDecideActive(t *testing.T) {
	good, bad := workerState{name: "w1"}, workerState{name: "w2", problem: "Unreachable"}
	for _, tc := range []struct {
		name    string
		check   check
		workers []workerState
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		{"all", check{}, []workerState{good}, metav1.ConditionTrue, v1alpha1.ReasonActive, "1 of 1"},
		{"some", check{}, []workerState{good, bad}, metav1.ConditionTrue, v1alpha1.ReasonSomeActive, "w2: Unreachable"},
		{"none", check{}, []workerState{bad}, metav1.ConditionFalse, v1alpha1.ReasonNoUsable, "w2: Unreachable"},
		{"bad config", check{problem: "no config"}, nil, metav1.ConditionFalse, v1alpha1.ReasonBadConfig, "no config"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decideActive(tc.check, tc.workers)
			if got.Status != tc.status || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %s %s %q", got.Status, got.Reason, got.Message)
			}
		})
	}
}

func TestCheckOf(t *testing.T) {
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
			c := checkOf(&kueue.AdmissionCheck{Spec: kueue.AdmissionCheckSpec{Parameters: tc.parameters}}, tc.config)
			if !strings.Contains(c.problem, tc.problem) || (tc.problem == "") != (c.problem == "") {
				t.Errorf("problem %q, want %q", c.problem, tc.problem)
			}
			if c.workers == nil || (len(c.workers) > 0) != (tc.problem == "") {
				t.Errorf("workers %v", c.workers)
			}
		})
	}
}
