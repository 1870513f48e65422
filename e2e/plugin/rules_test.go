package plugin

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
	"github.com/jobferry/jobferry/pkg/workeraccess"
)

// symptoms are what the table says that shows without a rule, by its name. Those without one are in
// TestThroughTheHub.
var symptoms = map[string]func(terminal){
	"get namespaces":       func(f terminal) { f.WorkerUntil("w1", ferrytest.NotReady(v1alpha1.ReasonForbidden)) },
	"list jobs":            func(f terminal) { f.WorkerUntil("w1", ferrytest.NotReady(v1alpha1.ReasonForbidden)) },
	"get jobs":             func(f terminal) { f.NamespaceIn("w1"); f.isRefused("MirrorRefused", "cannot create resource") },
	"patch jobs/status":    terminal.staysSuspended,
	"create namespaces":    func(f terminal) { f.isRefused("MirrorRefused", "namespaces") },
	"list nodes":           terminal.capacityUnknown,
	"list resourcequotas":  partlyChecked("resourcequotas"),
	"list namespaces":      terminal.isPlacedWithoutNamespaces,
	"list priorityclasses": partlyChecked("priorityclasses"),
	"list runtimeclasses":  partlyChecked("runtimeclasses"),
	"list deviceclasses":   partlyChecked("deviceclasses"),
	"list nodepools":       func(f terminal) { f.saysSchedulable("w1", "may not list nodepools.karpenter.sh") },
	"watch nodeclaims":     terminal.expectsNodes,
	"get configmaps cluster-autoscaler-status": terminal.asksAgain,
	"list events":                 terminal.doesntSayWhy,
	"list persistentvolumeclaims": terminal.isPlacedWithoutItsClaim,
	"list storageclasses":         terminal.isPlacedWithoutItsClaim,
	"get configmaps":              func(f terminal) { f.isNotCarried(v1alpha1.CarryConfigMaps, "configmap") },
	"get secrets":                 func(f terminal) { f.isNotCarried(v1alpha1.CarrySecrets, "secret") },
	"get serviceaccounts":         func(f terminal) { f.isNotCarried(v1alpha1.CarryServiceAccounts, "serviceaccount") },
	"get services":                func(f terminal) { f.isNotCarried(v1alpha1.CarryServices, "service") },
	"get leases":                  terminal.isUnguarded,
	"patch leases":                terminal.hasNoFence,
	"create serviceaccounts/token": func(f terminal) {
		f.WorkerUntil("w1", func(w *v1alpha1.WorkerCluster) bool {
			c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionTokenRenewed)
			return c != nil && c.Reason == v1alpha1.ReasonRenewalFailed
		})
	},
	"get pods":             nil,
	"get pods/log":         nil,
	"get pods/exec":        nil,
	"get pods/attach":      nil,
	"get pods/portforward": nil,
	"delete pods":          nil, // only where the hub shows Pods: e2e/pods
}

// A role without a rule of the table: something fails, and it's said what is missing. So there's no
// rule too many.
func TestEveryRule(t *testing.T) {
	for _, rule := range workeraccess.For(everything(t)) {
		name := rule.Verbs[0] + " " + rule.Resources[0]
		if _, named := symptoms[name+" "+strings.Join(rule.Names, " ")]; named {
			name += " " + strings.Join(rule.Names, " ")
		}
		symptom, known := symptoms[name]
		if !known {
			t.Errorf("what shows without %q?", name)
		}
		if symptom == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			f := terminalFor(t)
			m := f.RunManager()
			more := []string{"--carry", "ConfigMap,Secret,Service,ServiceAccount", "--capacity", "Autoscaled"}
			if rule.Resources[0] == "configmaps" && len(rule.Names) > 0 {
				more = more[2:] // who carries ConfigMaps may get all of them
			}
			if rule.Namespace != "" {
				more = append(more, "--job-controller", "Embedded")
			}
			f.register("w1", more...)
			m.Stop() // what it watches stays open when the permission is gone
			f.without("w1", rule)
			f.RunManager(func(o *manager.Options) { o.Timing.StuckNotice, o.Tokens.Fraction = 2*time.Second, 1e-6 })
			f.letGoAfter("w1")
			// with all rules it can be let go
			f.t.Cleanup(func() { f.afterwards("register", "w1", "--worker-context", "w1") })
			symptom(f)
			f.deleteJobs()
		})
	}
}

// everything needs every rule of the table.
func everything(t *testing.T) workeraccess.Settings {
	s := workeraccess.Everything()
	s.Account = registration.BaseName(terminalFor(t).hubUID())
	s.Origin = v1alpha1.Origin(terminalFor(t).hubUID())
	return s
}

// isUnguarded is told of a worker, to which Jobs go all the same.
func (f terminal) isUnguarded() {
	f.t.Helper()
	f.WorkerUntil("w1", func(w *v1alpha1.WorkerCluster) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionExclusive)
		return c != nil && c.Reason == v1alpha1.ReasonUnguarded && strings.Contains(c.Message, "may not read Lease jobferry-system/jobferry-writer-")
	})
	f.Submit("goes")
	f.MirrorUntil("w1", "goes", ferrytest.Exists)
}

// asksAgain has a Job placed for a node group that has just failed.
func (f terminal) asksAgain() {
	f.t.Helper()
	f.Apply(f.Cluster("w1"), metav1.NamespaceSystem, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"cluster-autoscaler-status"},
		"data":{"status":"nodeGroups: [{name: grows, health: {maxSize: 1}, scaleUp: {status: Backoff}}]"}}`)
	f.SetWorker("w1", `{"autoscaling":{"nodeTemplates":[{"name":"grows","labels":{"grows":"yes"},"allocatable":{"cpu":"4"},"maxNodes":1}]}}`)
	f.Submit("again", func(j *batchv1.Job) { j.Spec.Template.Spec.NodeSelector = map[string]string{"grows": "yes"} })
	f.EventUntil("again", "Placed", "after scale-up")
}

// expectsNodes has a worker with a NodePool, whose NodeClaims say nothing.
func (f terminal) expectsNodes() {
	f.t.Helper()
	f.AddKarpenter("w1")
	f.Apply(f.Cluster("w1"), "", `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"grows"},"spec":{}}`)
	f.saysSchedulable("w1", "may not watch nodeclaims.karpenter.sh")
	f.Kubectl(f.Cluster("w1"), "", "delete", "nodepools.karpenter.sh", "grows")
}

// deleteJobs leaves nothing that would keep a worker.
func (f terminal) deleteJobs() {
	f.t.Helper()
	jobs, err := f.Hub.Client().BatchV1().Jobs(f.NS).List(f.Context(), metav1.ListOptions{})
	f.check(err)
	for _, job := range jobs.Items {
		f.Delete(job.Name, metav1.DeletePropagationBackground)
		f.HubJobGone(job.Name)
	}
}

// without takes a rule from the hub's roles in a worker, and waits until that holds.
func (f terminal) without(worker string, rule workeraccess.Rule) {
	f.t.Helper()
	c, ctx := f.Cluster(worker).Client(), f.Context()
	isIt := func(p rbacv1.PolicyRule) bool {
		return slices.Equal(p.Resources, rule.Resources) && slices.Equal(p.Verbs, rule.Verbs)
	}
	if rule.Namespace == "" {
		role := f.clusterRole(worker)
		role.Rules = slices.DeleteFunc(role.Rules, isIt)
		_, err := c.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
		f.check(err)
	} else {
		f.check(c.RbacV1().Roles(rule.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, ours()))
	}
	for _, verb := range rule.Verbs {
		f.untilDenied(worker, rule, verb)
	}
}

// untilDenied waits for the API server's authorizer, which follows the roles.
func (f terminal) untilDenied(worker string, rule workeraccess.Rule, verb string) {
	f.t.Helper()
	f.untilAnswer(worker, rule, verb, false)
}

func (f terminal) untilAllowed(worker string, rule workeraccess.Rule) {
	f.t.Helper()
	for _, verb := range rule.Verbs {
		f.untilAnswer(worker, rule, verb, true)
	}
}

func (f terminal) untilAnswer(worker string, rule workeraccess.Rule, verb string, allowed bool) {
	f.t.Helper()
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	asked := &authorizationv1.ResourceAttributes{Group: rule.Group, Resource: resource, Subresource: subresource, Verb: verb, Namespace: rule.Namespace}
	if len(rule.Names) > 0 {
		asked.Name = rule.Names[0]
	}
	user := "system:serviceaccount:" + v1alpha1.SystemNamespace + ":" + registration.BaseName(f.hubUID())
	c := f.Cluster(worker).Client()
	err := wait.PollUntilContextCancel(f.Context(), 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: asked}}
		answer, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed == allowed, err
	})
	f.check(err)
}

// isRefused submits a Job to w1, which can't take it.
func (f terminal) isRefused(reason, text string) {
	f.t.Helper()
	f.Submit("job", ferrytest.OnWorker("w1"))
	f.says(f.EventUntil("job", reason, text), "forbidden")
}

// doesntSayWhy has a Job without Pods, for a reason that the hub may not read: that is told, and
// the Job isn't stuck.
func (f terminal) doesntSayWhy() {
	f.RestrictPods("w1")
	f.Submit("job", ferrytest.OnWorker("w1"))
	f.says(f.EventUntil("job", "PodsWaiting", "why can't be read"), "forbidden")
}

func (f terminal) capacityUnknown() {
	f.WorkerUntil("w1", func(w *v1alpha1.WorkerCluster) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionSchedulable)
		return c != nil && c.Reason == v1alpha1.ReasonCapacityUnknown && strings.Contains(c.Message, "may not list and watch nodes")
	})
	f.Submit("job", ferrytest.OnWorker("w1"))
	f.HubJobUntil("job", rigtest.Complete)
}

// partlyChecked places Jobs without what the hub may not read.
func partlyChecked(resource string) func(terminal) {
	return func(f terminal) {
		f.isPartlyChecked(resource)
		f.Submit("job", ferrytest.OnWorker("w1"))
		f.HubJobUntil("job", rigtest.Complete)
	}
}

func (f terminal) isPartlyChecked(resource string) {
	f.saysSchedulable("w1", "may not list and watch "+resource)
}

func (f terminal) saysSchedulable(worker, text string) {
	f.WorkerUntil(worker, func(w *v1alpha1.WorkerCluster) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionSchedulable)
		return c != nil && c.Reason == v1alpha1.ReasonPartlyChecked && strings.Contains(c.Message, text)
	})
}

// isNotCarried submits a Job that needs an object of a kind that may not be written.
func (f terminal) isNotCarried(kind v1alpha1.CarriedKind, word string) {
	f.t.Helper()
	c, ctx, name := f.Hub.Client().CoreV1(), f.Context(), metav1.ObjectMeta{Name: "needed"}
	var err error
	var template func(*corev1.PodSpec)
	switch kind {
	case v1alpha1.CarryConfigMaps:
		_, err = c.ConfigMaps(f.NS).Create(ctx, &corev1.ConfigMap{ObjectMeta: name}, metav1.CreateOptions{})
		template = from(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "needed"}}})
	case v1alpha1.CarrySecrets:
		_, err = c.Secrets(f.NS).Create(ctx, &corev1.Secret{ObjectMeta: name}, metav1.CreateOptions{})
		template = from(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "needed"}}})
	case v1alpha1.CarryServices:
		headless := &corev1.Service{ObjectMeta: name, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
		_, err = c.Services(f.NS).Create(ctx, headless, metav1.CreateOptions{})
		template = func(s *corev1.PodSpec) { s.Subdomain = "needed" }
	case v1alpha1.CarryServiceAccounts:
		_, err = c.ServiceAccounts(f.NS).Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
		template = func(s *corev1.PodSpec) { s.ServiceAccountName = "needed" }
	}
	f.check(err)
	f.Submit("job", ferrytest.OnWorker("w1"), func(j *batchv1.Job) { template(&j.Spec.Template.Spec) })
	f.says(f.EventUntil("job", "FailedCarry", word), "refused what the Job needs")
}

func from(source corev1.EnvFromSource) func(*corev1.PodSpec) {
	return func(s *corev1.PodSpec) { s.Containers[0].EnvFrom = append(s.Containers[0].EnvFrom, source) }
}

// isPlacedWithoutItsClaim: with the rule, the Job would wait on the hub.
func (f terminal) isPlacedWithoutItsClaim() {
	f.Submit("job", ferrytest.OnWorker("w1"), func(j *batchv1.Job) {
		j.Spec.Template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"}}}}
	})
	f.MirrorUntil("w1", "job", ferrytest.Exists)
	f.says(f.EventUntil("job", "PodsWaiting", "missing"), "persistentvolumeclaim")
	f.isPartlyChecked("")
}

// isPlacedWithoutNamespaces: with the rule, the Job would wait on the hub.
func (f terminal) isPlacedWithoutNamespaces() {
	f.NamespaceIn("w1")
	f.Create(f.Cluster("w1"), rigtest.Job(f.NS, "db", rigtest.RunForever(), rigtest.PodLabel("app", "db")))
	f.Submit("job", ferrytest.OnWorker("w1"), func(j *batchv1.Job) {
		j.Spec.Template.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "nobody"}},
				TopologyKey:       corev1.LabelHostname,
			}},
		}}
	})
	f.MirrorUntil("w1", "job", ferrytest.Exists)
	f.says(f.EventUntil("job", "PodsWaiting", "didn't match pod affinity"), "affinity")
	f.isPartlyChecked("namespaces")
}

func (f terminal) hasNoFence() {
	f.WorkerUntil("w1", func(w *v1alpha1.WorkerCluster) bool {
		c := meta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionFenced)
		return c != nil && c.Reason == v1alpha1.ReasonLeaseForbidden
	})
}

// staysSuspended moves a Job with progress to a worker that may not be told of it. It goes on with
// the permission.
func (f terminal) staysSuspended() {
	f.register("w2")
	f.Submit("job", ferrytest.OnWorker("w2"), oneByOne(4), rigtest.RunFor(2*time.Second))
	f.HubJobUntil("job", func(j *batchv1.Job) bool { return j.Status.Succeeded >= 1 })
	f.ok("drain", "w2", "--wait=false")
	f.Patch("job", `{"metadata":{"annotations":{"jobferry.dev/cluster-selector":"name=w1"}}}`)
	f.HubJobUntil("job", ferrytest.IsAt("w1"))
	f.MirrorUntil("w1", "job", func(j *batchv1.Job) bool { return ptr.Deref(j.Spec.Suspend, false) })
	f.ok("register", "w1", "--worker-context", "w1")
	f.HubJobUntil("job", rigtest.Complete)
}
