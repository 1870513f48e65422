package plugin

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
)

// evil looks like advice of the plugin.
const evil = "no\n  kubectl delete namespace prod"

// Texts of others make no lines of their own: those are the plugin's advice.
func TestForeignTextsAreOneLine(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"status":"error","error":%q}`, evil) }))
	defer prometheus.Close()
	selected := hubJob()
	selected.Annotations = map[string]string{v1alpha1.AnnotationClusterSelector: "no,\n  kubectl"}
	moving, _ := movingHub(t, selected)
	refused, session, hostile := newHub(t), newHub(t), newHub(t)
	refused.refuse(jobPath, http.StatusInternalServerError, metav1.StatusReasonInternalError, evil, nil)
	session.session = refusal(http.StatusConflict, metav1.StatusReasonConflict, evil, nil)
	hostile.container = func(_ []string, _ io.Reader, out io.Writer) {
		archive := tar.NewWriter(out)
		_ = archive.WriteHeader(&tar.Header{Name: "./a/" + evil, Typeflag: tar.TypeSymlink})
		_ = archive.WriteHeader(&tar.Header{Name: "./a/" + evil + strings.Repeat("x", 300), Typeflag: tar.TypeReg})
		_ = archive.Close()
	}
	for name, row := range map[string]struct {
		hub  *fakeHub
		args []string
		want string
	}{
		"an API server's":    {refused, []string{"describe", "shards"}, "error: no kubectl delete namespace prod\n"},
		"a session's":        {session, []string{"exec", "shards", "--", "ls"}, "error: exec: no kubectl delete namespace prod\n"},
		"Prometheus's":       {newHub(t), []string{"usage", "--prometheus", prometheus.URL}, "no kubectl delete namespace prod\n"},
		"a selector":         {moving, []string{"move", "shards", "--to", "east"}, "--overwrite 'jobferry.dev/cluster-selector=no, kubectl'\n"},
		"a file's":           {hostile, []string{"cp", "shards:/a", t.TempDir()}, "file nor a directory: ./a/no kubectl delete namespace prod\n"},
		"a file's, in error": {hostile, []string{"cp", "shards:/a", t.TempDir()}, "a/no kubectl delete namespace prodxxx"},
	} {
		if got := row.hub.run(row.args...); !strings.Contains(got.err, row.want) || strings.Contains(got.err, "\n  kubectl") {
			t.Errorf("%s: %s", name, got.err)
		}
	}
}

// A tenant of the worker, or an honest user of the hub, has a Job there that is larger than what is
// read: what the hub has in the worker is removed all the same, but for the Lease of its Jobs.
func TestALargeJobIsUnregisteredFrom(t *testing.T) {
	const lease = `{"metadata":{"namespace":"jobferry-system","name":"jobferry-fence-hub","labels":{"jobferry.dev/origin":"hub"}}}`
	deleted := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodDelete:
			deleted++
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
		case strings.HasSuffix(r.URL.Path, "/leases"):
			_, _ = io.WriteString(w, `{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","items":[`+lease+`]}`)
		default:
			env := strings.Repeat(`{"name":"a"},`, 10_000)
			_, _ = io.WriteString(w, `{"kind":"JobList","apiVersion":"batch/v1","items":[{"spec":{"template":{"spec":{"containers":[{"env":[`+env+`{}]}]}}}}]}`)
		}
	}))
	defer server.Close()
	worker, err := access.NewWorkerClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	streams, _, _, said := genericiooptions.NewTestIOStreams()
	if err := (&cli{IOStreams: streams}).removeLeases(t.Context(), worker, "hub"); err != nil || deleted > 0 || !strings.Contains(said.String(), "stays for the Jobs") {
		t.Errorf("%v, %d Leases are deleted, it says %s", err, deleted, said)
	}
}

// The names that a hostile worker lists aren't printed, and not offered to a shell.
func TestNamesOfAWorker(t *testing.T) {
	for name, object := range map[string]metav1.ObjectMeta{
		"a name of two lines":       {Name: evil},
		"a namespace of two lines":  {Name: "a", Namespace: evil},
		"an origin for a shell":     {Name: "a", Labels: map[string]string{v1alpha1.LabelOrigin: "x; rm -rf ~"}},
		"an origin of two lines":    {Name: "a", Labels: map[string]string{v1alpha1.LabelOrigin: evil}},
		"a name that a shell obeys": {Name: "$(ls)"},
		"a name that none is":       {Name: strings.Repeat("a", 100<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			var deleted []string
			worker := interceptor.NewClient(fake.NewClientBuilder().WithScheme(access.Scheme).Build(), interceptor.Funcs{
				List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
					switch list := list.(type) {
					case *coordinationv1.LeaseList:
						list.Items = []coordinationv1.Lease{{ObjectMeta: object}}
					case *rbacv1.RoleList:
						list.Items = []rbacv1.Role{{ObjectMeta: object}}
					}
					return nil
				},
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					deleted = append(deleted, o.GetName())
					return nil
				},
			})
			streams, _, _, said := genericiooptions.NewTestIOStreams()
			c := &cli{IOStreams: streams}
			if err := c.removeLeases(t.Context(), worker, "hub"); !errors.Is(err, errName) {
				t.Errorf("Leases: %v", err)
			}
			err := c.removeRoles(t.Context(), worker, "hub", func(string) bool { return false })
			if isOrigin := object.Labels != nil; !isOrigin && !errors.Is(err, errName) || !isOrigin && len(deleted) > 0 {
				t.Errorf("Roles: %v, deleted %q", err, deleted)
			}
			if slices.ContainsFunc(strings.Split(said.String(), "\n"), func(line string) bool { return strings.Contains(line, "kubectl") }) {
				t.Errorf("it says %s", said)
			}
		})
	}
}
