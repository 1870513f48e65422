package plugin

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/util/version"
)

func TestSkewBetween(t *testing.T) {
	for _, row := range []struct{ plugin, manager, want string }{
		{"v0.2.3", "v0.2.0", ""},
		{"v0.2.3", "v0.1.9", ""},
		{"v0.2.3", "v0.3.0-rc.1", ""},
		{"v0.2.3", "v0.4.0", "the plugin is v0.2.3, and the hub's jobferry-manager is v0.4.0: more than one minor release apart, so commands may fail or show less. Use a plugin of v0.4"},
		{"v0.3.0", "v0.1.0", "Use a plugin of v0.1"},
		{"v1.0.0", "v0.9.0", "Use a plugin of v0.9"},
		{"v0.2.3", "", "doesn't say its version: it's older than any release, and this plugin is v0.2.3"},
		{"v0.2.3", "latest", `"latest", which is no semantic version`},
		// A development build is before, between or after releases: nobody knows.
		{"v0.0.0-dev+abc", "v0.9.0", ""},
		{"v0.0.0-20261122081930-a2981d157604", "", ""},
		{"v0.9.0", "v0.0.0-dev", ""},
	} {
		got := skewBetween(row.plugin, row.manager)
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("plugin %s, manager %s: %q, want %q", row.plugin, row.manager, got, row.want)
		}
	}
}

const discoveryPath = "/apis/subresources.jobferry.dev/v1alpha1"

// managedBy has the hub's manager be of a version.
func (h *fakeHub) managedBy(manager string) {
	h.answers[discoveryPath] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(version.Header, manager)
		h.encode(w, &metav1.APIResourceList{})
	})
}

// runAs runs a plugin of a version.
func (h *fakeHub) runAs(plugin string, args ...string) said {
	h.t.Helper()
	var out, errOut bytes.Buffer
	c := newCLI(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, clocktesting.NewFakePassiveClock(now))
	c.version = plugin
	code := c.run(h.t.Context(), append([]string{"--kubeconfig", h.kubeconfig()}, args...))
	return said{out.String(), errOut.String(), code}
}

// A plugin that is too far from the manager says so once, and does its work all the same.
func TestWarningOfSkew(t *testing.T) {
	const warning = "warning: the plugin is v0.1.0, and the hub's jobferry-manager is v0.3.0"
	for _, args := range []string{"jobs", "pods shards", "clusters", "logs shards", "describe shards", "top", "version"} {
		h := newHub(t)
		h.answers["/version"] = map[string]string{"gitVersion": "v1.36.0"}
		h.managedBy("v0.3.0")
		got := h.runAs("v0.1.0", strings.Fields(args)...)
		if strings.Count(got.err, warning) != 1 || got.code != 0 || got.out == "" {
			t.Errorf("%s: %+v", args, got)
		}
		h.managedBy("v0.2.5")
		if got := h.runAs("v0.1.0", strings.Fields(args)...); got.err != "" || got.code != 0 {
			t.Errorf("%s, one minor release apart: %+v", args, got)
		}
	}
}

// Completion, help and --client ask nobody; a hub whose manager can't be asked is no reason for a
// warning.
func TestNoWarningOfSkew(t *testing.T) {
	h := newHub(t)
	h.managedBy("v0.9.0")
	for _, args := range []string{"__complete jobs sh", "version --client", "jobs --help", "completion bash"} {
		if got := h.runAs("v0.1.0", strings.Fields(args)...); strings.Contains(got.err, "warning") || got.code != 0 {
			t.Errorf("%s: %+v", args, got)
		}
	}
	delete(h.answers, discoveryPath)
	if got := h.runAs("v0.1.0", "jobs"); got.err != "" || got.code != 0 {
		t.Errorf("%+v", got)
	}
}

// What a manager says reaches a terminal in one line, without what a terminal obeys.
func TestHostileVersion(t *testing.T) {
	h := newHub(t)
	h.managedBy("latest\u202e" + strings.Repeat("x", 1000))
	got := h.runAs("v0.1.0", "jobs")
	if !strings.Contains(got.err, "no semantic version") || strings.Contains(got.err, "\u202e") || len(got.err) > 250 {
		t.Errorf("%+v", got)
	}
}

func TestVersions(t *testing.T) {
	h := newHub(t)
	h.answers["/version"] = map[string]string{"gitVersion": "v1.36.0"}
	h.managedBy("v0.3.0")
	want := "kubectl-jobferry: v0.3.1\nHub's Kubernetes: v1.36.0\njobferry-manager: v0.3.0\n"
	if got := h.runAs("v0.3.1", "version"); got.out != want || got.err != "" || got.code != 0 {
		t.Errorf("%+v", got)
	}
	delete(h.answers, discoveryPath)
	got := h.runAs("v0.3.1", "version")
	if !strings.Contains(got.out, "jobferry-manager: unknown\n") || !strings.Contains(got.err, "404") || got.code != 0 {
		t.Errorf("%+v", got)
	}
}

// What an older hub doesn't know is said to be that.
func TestErrorsOfAnOlderHub(t *testing.T) {
	details := &metav1.StatusDetails{}
	h := newHub(t)
	h.refuse(subPath+"pods", http.StatusNotFound, metav1.StatusReasonNotFound,
		`there is nothing at "`+subPath+`pods": it's /apis/subresources.jobferry.dev/v1alpha1/namespaces/NAMESPACE/jobs/NAME/ with one of log`, details)
	h.refuse(subPath+"log", http.StatusBadRequest, metav1.StatusReasonBadRequest, `unknown parameter "worker"; known: pod`, details)
	for _, args := range []string{"pods shards", "logs shards --pod a --worker west"} {
		got := h.run(strings.Fields(args)...)
		if got.code != exitFailed || !strings.Contains(got.err, "jobferry-manager is older than this plugin") || !strings.Contains(got.err, "kubectl jobferry version") {
			t.Errorf("%s: %+v", args, got)
		}
	}
	err := access.Explain(errors.New("failed to create typed patch object (/west; jobferry.dev/v1alpha1, Kind=WorkerCluster): .spec.capacity: field not declared in schema"))
	if !strings.Contains(err.Error(), "the CRD on the hub is older than this plugin") {
		t.Error(err)
	}
}
