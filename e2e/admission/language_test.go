package admission_test

import (
	"context"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	managerName = "jobferry-manager"
	managerUser = "system:serviceaccount:" + ferrytest.SystemNamespace + ":" + managerName
	// the group that may do anything: what is refused, the policies refuse
	administrators = "system:masters"
)

// hub is one hub as one test sees it; its namespace is dispatched.
type hub struct {
	*ferrytest.Ferry
	t testing.TB
}

// hubFor prepares the hub of that name, and a namespace of the test.
func hubFor(t testing.TB, name string) hub {
	t.Helper()
	h := hub{ferrytest.ForHub(t, name), t}
	h.dispatch(h.NS)
	return h
}

func (h hub) dispatch(namespace string) {
	h.t.Helper()
	h.Kubectl(h.Hub, "", "label", "namespace", namespace, "--overwrite", v1alpha1.LabelDispatch+"=enabled")
}

// policies are installed once in each hub.
var policies sync.Map

// withPolicies installs the policies of a folder of config/admission, and waits until they're in
// force.
func (h hub) withPolicies(folder string) hub {
	h.t.Helper()
	once, _ := policies.LoadOrStore(h.Hub.Name(), &sync.Once{})
	once.(*sync.Once).Do(func() {
		h.Kubectl(h.Hub, "", "apply", "--server-side", "-k", checkout.Path("config", "admission", folder))
	})
	probe := rigtest.Job(h.NS, "probe", ours, annotated(v1alpha1.AnnotationOnClusterLost, "nonsense"))
	h.eventually("the checks are in force", func() bool { return h.try("somebody", probe) != nil })
	return h
}

// eventually waits for what nothing tells of.
func (h hub) eventually(what string, condition func() bool) {
	h.t.Helper()
	err := wait.PollUntilContextCancel(h.Context(), 50*time.Millisecond, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		h.t.Fatalf("%s: %v", what, err)
	}
}

// as is a client of a user who may do anything; warnings go to heard.
func (h hub) as(user string, heard rest.WarningHandler) kubernetes.Interface {
	h.t.Helper()
	config := h.Hub.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{administrators, "system:authenticated"}}
	config.WarningHandler = heard
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		h.t.Fatal(err)
	}
	return client
}

// try has a user create a Job without keeping it.
func (h hub) try(user string, job *batchv1.Job) error {
	h.t.Helper()
	_, err := h.as(user, rest.NoWarnings{}).BatchV1().Jobs(job.Namespace).
		Create(h.Context(), job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// ours makes a Job Jobferry's, as users may do themselves.
func ours(job *batchv1.Job) { job.Spec.ManagedBy = ptr.To(v1alpha1.ManagedByDispatcher) }

func annotated(key, value string) rigtest.Option {
	return func(job *batchv1.Job) { metav1.SetMetaDataAnnotation(&job.ObjectMeta, key, value) }
}

func labeled(key, value string) rigtest.Option {
	return func(job *batchv1.Job) { metav1.SetMetaDataLabel(&job.ObjectMeta, key, value) }
}

// warnings collects what the API server warns of.
type warnings struct {
	mu   sync.Mutex
	text []string
}

func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = append(w.text, text)
}
