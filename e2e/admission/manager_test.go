package admission_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

func TestStolenManagerAndJobsNewHub(t *testing.T) {
	stolenManagerAndJobs(t, hubFor(t, newHub).withPolicies("policy"))
}

func TestStolenManagerAndJobsOldHub(t *testing.T) {
	stolenManagerAndJobs(t, hubFor(t, oldHub).withPolicies("checks"))
}

// thief is somebody with the credentials of the manager's ServiceAccount.
func (h hub) thief() kubernetes.Interface {
	h.t.Helper()
	h.Kubectl(h.Hub, "", "apply", "--server-side", "-f", checkout.Path("config", "rbac", "role.yaml"), "-f", checkout.Path("config", "rbac", "bindings.yaml"),
		"-f", checkout.Path("config", "webhook", "role.yaml"), "-f", checkout.Path("config", "webhook", "bindings.yaml"))
	kubeconfig, err := h.Hub.ServiceAccountKubeconfig(h.Context(), ferrytest.SystemNamespace, managerName)
	if err != nil {
		h.t.Fatal(err)
	}
	restConfig, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		h.t.Fatal(err)
	}
	c, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

// stolenManagerAndJobs changes Jobs with the manager's credentials: what the manager does passes,
// all else is refused.
func stolenManagerAndJobs(t *testing.T, h hub) {
	thief := h.thief()
	h.Create(h.Hub, rigtest.Job(h.NS, "ours", ours, labeled("team", "a"), annotated("note", "x")))
	h.Create(h.Hub, rigtest.Job(h.NS, "others", rigtest.ManagedBy("example.org/x")))
	for name, row := range map[string]struct {
		job, patch, subresource, want string
	}{
		"a placement":                   {"ours", `{"metadata":{"finalizers":["jobferry.dev/mirror"]},` + placementPatch("w1")[1:], "status", ""},
		"a status":                      {"ours", `{"status":{"ready":0}}`, "status", ""},
		"suspend":                       {"ours", `{"spec":{"suspend":true}}`, "", "cannot patch resource"},
		"parallelism":                   {"ours", `{"spec":{"parallelism":1000}}`, "", "cannot patch resource"},
		"deadline":                      {"ours", `{"spec":{"activeDeadlineSeconds":1}}`, "", "cannot patch resource"},
		"a label":                       {"ours", `{"metadata":{"labels":{"team":"b"}}}`, "status", "metadata.labels"},
		"no labels":                     {"ours", `{"metadata":{"labels":null}}`, "status", "metadata.labels"},
		"somebody's annotation":         {"ours", `{"metadata":{"annotations":{"note":"y"}}}`, "status", "metadata.annotations"},
		"somebody's annotation, gone":   {"ours", `{"metadata":{"annotations":{"note":null}}}`, "status", "metadata.annotations"},
		"another finalizer":             {"ours", `{"metadata":{"finalizers":["example.org/x"]}}`, "status", "metadata.finalizers"},
		"an owner":                      {"ours", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}}`, "status", "metadata.ownerReferences"},
		"a Job of others":               {"others", `{"metadata":{"finalizers":["jobferry.dev/mirror"]}}`, "status", "spec.managedBy"},
		"the status of a Job of others": {"others", `{"status":{"ready":0}}`, "status", "spec.managedBy"},
	} {
		var subresources []string
		if row.subresource != "" {
			subresources = append(subresources, row.subresource)
		}
		refused := func() error {
			_, err := thief.BatchV1().Jobs(h.NS).Patch(h.Context(), row.job, types.MergePatchType, []byte(row.patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
			return err
		}
		if row.want == "" {
			if err := refused(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var last error
		h.eventually(name+" is refused", func() bool {
			last = refused()
			return last != nil
		})
		if row.subresource != "" && !strings.Contains(last.Error(), "ValidatingAdmissionPolicy 'jobferry-manager-jobs'") || !strings.Contains(last.Error(), row.want) {
			t.Errorf("%s: error %v, want %q", name, last, row.want)
		}
	}
}

func TestStolenManagerAndWebhookNewHub(t *testing.T) { stolenManagerAndWebhook(t, hubFor(t, newHub)) }

func TestStolenManagerAndWebhookOldHub(t *testing.T) { stolenManagerAndWebhook(t, hubFor(t, oldHub)) }

// stolenManagerAndWebhook changes the webhook's configuration with the manager's credentials: the
// caBundle passes, all else is refused.
func stolenManagerAndWebhook(t *testing.T, h hub) {
	thief := h.thief()
	h.Kubectl(h.Hub, "", "apply", "--server-side", "--force-conflicts", "-k", checkout.Path("config", "admission", "webhook"))
	t.Cleanup((&service{hub: h}).removeConfiguration)
	try := func(patch string) error {
		_, err := thief.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(h.Context(), configuration, types.JSONPatchType,
			[]byte("["+patch+"]"), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for name, patch := range map[string]string{
		"all resources":  `{"op":"replace","path":"/webhooks/0/rules/0/resources","value":["*"]}`,
		"a rule more":    `{"op":"add","path":"/webhooks/0/rules/-","value":{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["secrets"]}}`,
		"elsewhere":      `{"op":"replace","path":"/webhooks/0/clientConfig/service/namespace","value":"default"}`,
		"another path":   `{"op":"replace","path":"/webhooks/0/clientConfig/service/path","value":"/x"}`,
		"a URL":          `{"op":"remove","path":"/webhooks/0/clientConfig/service"},{"op":"add","path":"/webhooks/0/clientConfig/url","value":"https://thief.example.com"}`,
		"all namespaces": `{"op":"replace","path":"/webhooks/0/namespaceSelector","value":{}}`,
		"no conditions":  `{"op":"remove","path":"/webhooks/0/matchConditions"}`,
		"ignored":        `{"op":"replace","path":"/webhooks/0/failurePolicy","value":"Ignore"}`,
		"none":           `{"op":"remove","path":"/webhooks/0"}`,
		"one more":       `{"op":"copy","from":"/webhooks/0","path":"/webhooks/-"},{"op":"replace","path":"/webhooks/2/name","value":"second.jobferry.dev"}`,
		"a label":        `{"op":"add","path":"/metadata/labels","value":{"a":"b"}}`,
		"an owner":       `{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"x"}]}`,
	} {
		var last error
		h.eventually(name+" is refused", func() bool {
			last = try(patch)
			return last != nil
		})
		if !strings.Contains(last.Error(), "ValidatingAdmissionPolicy 'jobferry-manager-webhook'") {
			t.Errorf("%s: %v", name, last)
		}
	}
	if err := try(`{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":""}`); err != nil {
		t.Errorf("the caBundle: %v", err)
	}
}
