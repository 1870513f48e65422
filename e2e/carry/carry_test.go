package carry_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager"
	"github.com/jobferry/jobferry/pkg/mirror"
)

func TestCarry(t *testing.T) {
	f := ferryFor(t)
	f.RunManager(func(o *manager.Options) { o.CarryAccountAnnotations = mirror.Keys{"cloud.example.org"} })
	f.allow()
	for name, test := range map[string]func(ferry){
		"GoesAlongAndGoesWithTheJob":     goesAlong,
		"FollowsItsSource":               followsItsSource,
		"IsCreatedAnewWhenImmutable":     isCreatedAnew,
		"MissingHoldsTheJob":             missingHoldsTheJob,
		"MissingButOptional":             missingButOptional,
		"OfOthersIsLeftAlone":            ofOthersIsLeftAlone,
		"IsSharedByJobs":                 isShared,
		"IsSharedByManyAtOnce":           isSharedByMany,
		"ServiceAccount":                 serviceAccount,
		"HeadlessService":                headlessService,
		"ServiceWithAnAddressStays":      serviceWithAnAddressStays,
		"TokensStay":                     tokensStay,
		"RegistrationsStay":              registrationsStay,
		"RefusedByTheWorker":             refusedByTheWorker,
		"MovesWithTheJob":                movesWithTheJob,
		"SuspendedWhileSomethingMissing": suspendedWhileMissing,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(ferryFor(t))
		})
	}
}

// A worker to which nothing is carried lacks some of what a Job's Pods name, and has some.
func TestUncarried(t *testing.T) {
	f := ferryFor(t)
	f.RunManager()
	f.Register("w1")
	f.set("w1", `{"carry":[]}`)
	f.NamespaceIn("w1")
	peers := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "peers"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	_, err := f.Cluster("w1").Client().CoreV1().Services(f.NS).Create(f.Context(), peers, metav1.CreateOptions{})
	f.check(err)
	f.Submit("found", ferrytest.OnWorker("w1"), withSubdomain("peers"))
	f.HubJobUntil("found", rigtest.Complete)
	if f.HasEvent("found", v1alpha1.EventNotCarried, "") {
		t.Error("the Service is there")
	}
	f.Submit("lost", ferrytest.OnWorker("w1"), withSubdomain("nobody"), withConfigMap("settings", true))
	f.EventUntil("lost", v1alpha1.EventNotCarried, `Worker w1: service "nobody" isn't there`)
	f.EventUntil("lost", v1alpha1.EventNotCarried, `configmap "settings" isn't there, and the WorkerCluster's spec.carry lacks ConfigMap: the Job's Pods start without it`)
	f.HubJobUntil("lost", rigtest.Complete)
}

func goesAlong(f ferry) {
	f.configMap(f.Hub, "settings", "a")
	f.secret(f.Hub, "password", "b")
	f.Submit("job", rigtest.RunForever(), withConfigMap("settings", false), withSecret("password"))
	m := f.MirrorUntil("w1", "job", rigtest.Running(1))
	if suspended(m) {
		f.t.Error("the mirror is suspended")
	}
	settings, password := f.configMapUntil("w1", "settings", configMapIs("a")), f.secretUntil("w1", "password", secretIs("b"))
	for _, o := range []metav1.Object{settings, password} {
		if !slices.Equal(owners(o), []string{"job"}) || o.GetOwnerReferences()[0].UID != m.UID || o.GetLabels()[v1alpha1.LabelOrigin] == "" {
			f.t.Errorf("%s: owners %v, labels %v", o.GetName(), o.GetOwnerReferences(), o.GetLabels())
		}
	}
	f.HubJobUntil("job", rigtest.Running(1))
	f.Delete("job", metav1.DeletePropagationBackground)
	f.gone("w1", "configmaps", "settings")
	f.gone("w1", "secrets", "password")
	f.HubJobGone("job")
}

// headlessService has the Pods of a Job, and of one that comes later, find each other by name.
func headlessService(f ferry) {
	source := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "peers"}, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": "a"}, PublishNotReadyAddresses: true,
		Ports: []corev1.ServicePort{{Name: "rpc", Port: 4000}},
	}}
	services := f.Hub.Client().CoreV1().Services(f.NS)
	source, err := services.Create(f.Context(), source, metav1.CreateOptions{})
	f.check(err)
	f.Submit("one", rigtest.RunForever(), withSubdomain("peers"))
	f.MirrorUntil("w1", "one", rigtest.Running(1))
	f.Submit("two", rigtest.RunForever(), withSubdomain("peers"))
	f.MirrorUntil("w1", "two", rigtest.Running(1))
	copied := f.serviceUntil("w1", "peers", func(s *corev1.Service) bool { return len(owners(s)) == 2 })
	if spec := copied.Spec; spec.ClusterIP != corev1.ClusterIPNone || spec.Selector["app"] != "a" || !spec.PublishNotReadyAddresses ||
		len(spec.Ports) != 1 || spec.Ports[0].Name != "rpc" || spec.Ports[0].Port != 4000 {
		f.t.Errorf("the copy is %+v", spec)
	}
	source.Spec.Selector["app"] = "b"
	_, err = services.Update(f.Context(), source, metav1.UpdateOptions{})
	f.check(err)
	f.serviceUntil("w1", "peers", func(s *corev1.Service) bool { return s.Spec.Selector["app"] == "b" })
	f.Delete("one", metav1.DeletePropagationBackground)
	f.serviceUntil("w1", "peers", func(s *corev1.Service) bool { return len(owners(s)) == 1 })
	f.Delete("two", metav1.DeletePropagationBackground)
	f.gone("w1", "services", "peers")
}

func serviceWithAnAddressStays(f ferry) {
	_, err := f.Hub.Client().CoreV1().Services(f.NS).Create(f.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "peers"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	f.check(err)
	f.Submit("job", withSubdomain("peers"))
	f.EventUntil("job", v1alpha1.EventNotCarried, `service "peers" isn't headless, and is never carried`)
	f.HubJobUntil("job", rigtest.Complete)
	f.gone("w1", "services", "peers")
}

func followsItsSource(f ferry) {
	f.configMap(f.Hub, "settings", "a")
	f.Submit("job", rigtest.RunForever(), withConfigMap("settings", false))
	before := f.configMapUntil("w1", "settings", configMapIs("a"))
	f.change(f.Hub, "settings", "b")
	after := f.configMapUntil("w1", "settings", configMapIs("b"))
	if after.UID != before.UID {
		f.t.Error("the copy was created anew")
	}
	f.check(f.Hub.Client().CoreV1().ConfigMaps(f.NS).Delete(f.Context(), "settings", metav1.DeleteOptions{}))
	f.configMap(f.Hub, "settings", "c")
	f.configMapUntil("w1", "settings", configMapIs("c"))
}

func isCreatedAnew(f ferry) {
	immutable := func(s *corev1.Secret) { s.Immutable = ptr.To(true) }
	f.secret(f.Hub, "password", "a", immutable)
	f.Submit("one", rigtest.RunForever(), withSecret("password"))
	f.Submit("two", rigtest.RunForever(), withSecret("password"))
	before := f.secretUntil("w1", "password", func(s *corev1.Secret) bool { return len(owners(s)) == 2 })
	f.check(f.Hub.Client().CoreV1().Secrets(f.NS).Delete(f.Context(), "password", metav1.DeleteOptions{}))
	f.secret(f.Hub, "password", "b", immutable)
	// the other Job may create it while this one is about to, and each adds itself
	after := f.secretUntil("w1", "password", func(s *corev1.Secret) bool {
		return secretIs("b")(s) && slices.Equal(owners(s), owners(before))
	})
	if after.UID == before.UID {
		f.t.Error("an immutable copy was changed")
	}
}

func missingHoldsTheJob(f ferry) {
	f.Submit("job", withConfigMap("settings", false))
	f.EventUntil("job", v1alpha1.EventFailedCarry, `configmap "settings" not found: create it on the hub in namespace `+f.NS)
	if m := f.MirrorUntil("w1", "job", ferrytest.Exists); !suspended(m) {
		f.t.Error("the mirror isn't suspended")
	}
	f.configMap(f.Hub, "settings", "a")
	ended := f.HubJobUntil("job", rigtest.Complete)
	f.configMapUntil("w1", "settings", configMapIs("a"))
	if ferrytest.Suspended(ended) || f.HasEvent("job", v1alpha1.EventStatusRejected, "") || f.HasEvent("job", v1alpha1.EventDrift, "") {
		f.t.Errorf("the wait shows in the Job's status: %+v", ended.Status)
	}
}

func missingButOptional(f ferry) {
	f.Submit("job", rigtest.RunForever(), withConfigMap("settings", true))
	f.HubJobUntil("job", rigtest.Running(1))
	f.lacks("w1", "settings")
	f.configMap(f.Hub, "settings", "a")
	f.configMapUntil("w1", "settings", configMapIs("a"))
}

func ofOthersIsLeftAlone(f ferry) {
	f.NamespaceIn("w1")
	f.configMap(f.Cluster("w1"), "settings", "theirs")
	f.configMap(f.Cluster("w1"), "provided", "there")
	f.configMap(f.Hub, "settings", "ours")
	f.Submit("job", withConfigMap("settings", false), withConfigMap("provided", false))
	f.HubJobUntil("job", rigtest.Complete)
	f.EventUntil("job", v1alpha1.EventNotCarried, `configmap "settings" there isn't Jobferry's`)
	settings := f.configMapUntil("w1", "settings", configMapIs("theirs"))
	if len(settings.OwnerReferences) > 0 || len(settings.Labels) > 0 {
		f.t.Errorf("metadata %+v", settings.ObjectMeta)
	}
}

func isShared(f ferry) {
	f.configMap(f.Hub, "settings", "a")
	f.Submit("one", rigtest.RunForever(), withConfigMap("settings", false))
	f.Submit("two", rigtest.RunForever(), withConfigMap("settings", false))
	copied := f.configMapUntil("w1", "settings", ownedBy("one", "two"))
	f.Delete("one", metav1.DeletePropagationBackground)
	if left := f.configMapUntil("w1", "settings", ownedBy("two")); left.UID != copied.UID {
		f.t.Error("the copy was created anew")
	}
	f.Delete("two", metav1.DeletePropagationForeground)
	f.gone("w1", "configmaps", "settings")
}

func isSharedByMany(f ferry) {
	const many = 25
	f.configMap(f.Hub, "settings", "a")
	for i := range many {
		f.Submit(fmt.Sprint("job-", i), withConfigMap("settings", false))
	}
	for i := range many {
		f.HubJobUntil(fmt.Sprint("job-", i), rigtest.Complete)
	}
	f.configMapUntil("w1", "settings", func(c *corev1.ConfigMap) bool { return len(owners(c)) == many })
}

func serviceAccount(f ferry) {
	f.secret(f.Hub, "registry", "a")
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "robot", Annotations: map[string]string{"example.org/role": "admin", "cloud.example.org/role": "reader"}},
		Secrets:    []corev1.ObjectReference{{Name: "token"}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
		AutomountServiceAccountToken: ptr.To(false),
	}
	_, err := f.Hub.Client().CoreV1().ServiceAccounts(f.NS).Create(f.Context(), account, metav1.CreateOptions{})
	f.check(err)
	f.Submit("job", rigtest.RunForever(), as("robot"))
	f.HubJobUntil("job", rigtest.Running(1))
	copied := until(f, "w1", "serviceaccounts", "robot", func(a *corev1.ServiceAccount) bool { return slices.Equal(owners(a), []string{"job"}) })
	if len(copied.Secrets) > 0 || copied.Annotations["example.org/role"] != "" || copied.Annotations["cloud.example.org/role"] != "reader" || *copied.AutomountServiceAccountToken ||
		!slices.Equal(copied.ImagePullSecrets, account.ImagePullSecrets) {
		f.t.Errorf("got %+v", copied)
	}
	f.EventUntil("job", v1alpha1.EventNotCarried, `serviceaccount "robot" is copied without the annotations that may give its Pods rights (example.org/role)`)
	f.secretUntil("w1", "registry", secretIs("a"))
	if pods := f.Pods(f.Cluster("w1")); pods[0].Spec.ServiceAccountName != "robot" ||
		!slices.Equal(pods[0].Spec.ImagePullSecrets, account.ImagePullSecrets) {
		f.t.Errorf("Pod as %s with %v", pods[0].Spec.ServiceAccountName, pods[0].Spec.ImagePullSecrets)
	}
}

func tokensStay(f ferry) {
	f.secret(f.Hub, "token", "a", func(s *corev1.Secret) {
		s.Type = corev1.SecretTypeServiceAccountToken
		s.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
	})
	f.Submit("job", withSecret("token"))
	f.EventUntil("job", v1alpha1.EventFailedCarry, `secret "token" is of type kubernetes.io/service-account-token, and is never carried`)
	if m := f.MirrorUntil("w1", "job", ferrytest.Exists); !suspended(m) {
		f.t.Error("the mirror isn't suspended")
	}
	f.gone("w1", "secrets", "token")
}

// registrationsStay: a Job in the namespace of the registrations could refer to them, and is never
// dispatched. (That they aren't carried, either, is held by package carry.)
func registrationsStay(f ferry) {
	job := f.Job("job-"+f.NS, withSecret("w2"))
	job.Namespace = ferrytest.SystemNamespace
	f.Create(f.Hub, job)
	f.EventOn(ferrytest.SystemNamespace, job.Name, v1alpha1.EventNotDispatched, "are never dispatched")
	f.Until(rig.Object(f.Cluster("w1").Client().CoreV1().RESTClient(), "secrets", ferrytest.SystemNamespace, "w2"), rig.Gone)
	background := metav1.DeletePropagationBackground
	f.check(f.Hub.Client().BatchV1().Jobs(job.Namespace).Delete(f.Context(), job.Name, metav1.DeleteOptions{PropagationPolicy: &background}))
	f.JobGone(f.Hub, job.Namespace, job.Name)
}

func refusedByTheWorker(f ferry) {
	f.NamespaceIn("w1")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "no-secrets"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/secrets": resource.MustParse("0")},
	}}
	_, err := f.Cluster("w1").Client().CoreV1().ResourceQuotas(f.NS).Create(f.Context(), quota, metav1.CreateOptions{})
	f.check(err)
	until(f, "w1", "resourcequotas", "no-secrets", func(q *corev1.ResourceQuota) bool { return q.Status.Hard != nil })
	f.secret(f.Hub, "password", "a")
	f.Submit("job", withSecret("password"))
	f.EventUntil("job", v1alpha1.EventFailedCarry, "Worker w1: refused what the Job needs: ")
	f.HubJobUntil("job", ferrytest.All(rigtest.Complete, ferrytest.IsAt("w2")))
	f.secretUntil("w2", "password", secretIs("a"))
	f.MirrorGone("w1", "job")
}

// movesWithTheJob deletes the mirror in the worker: the next one needs its objects as well.
func movesWithTheJob(f ferry) {
	f.configMap(f.Hub, "settings", "a")
	f.Submit("job", rigtest.RunForever(), withConfigMap("settings", false))
	first := f.MirrorUntil("w1", "job", rigtest.Running(1))
	background := metav1.DeletePropagationBackground
	f.check(f.Cluster("w1").Client().BatchV1().Jobs(f.NS).Delete(f.Context(), "job", metav1.DeleteOptions{PropagationPolicy: &background}))
	f.configMapUntil("w1", "settings", func(c *corev1.ConfigMap) bool {
		return slices.Equal(owners(c), []string{"job"}) && c.OwnerReferences[0].UID != first.UID
	})
	f.MirrorUntil("w1", "job", rigtest.Running(1))
}

func suspendedWhileMissing(f ferry) {
	f.Submit("job", withConfigMap("settings", false))
	f.EventUntil("job", v1alpha1.EventFailedCarry, "not found")
	f.Patch("job", `{"spec":{"suspend":true}}`)
	f.HubJobUntil("job", ferrytest.Suspended)
	f.configMap(f.Hub, "settings", "a")
	if m := f.MirrorUntil("w1", "job", ferrytest.Exists); !suspended(m) {
		f.t.Error("the mirror isn't suspended")
	}
	f.configMapUntil("w1", "settings", configMapIs("a"))
	f.Patch("job", `{"spec":{"suspend":false}}`)
	f.HubJobUntil("job", rigtest.Complete)
}
