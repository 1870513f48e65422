package plugin

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/product"
)

// terminal is where somebody types: a ferry, and the plugin with a kubeconfig for all clusters.
type terminal struct {
	*ferrytest.Ferry
	t          *testing.T
	kubeconfig string
}

// outcome is what one run of the plugin came to.
type outcome struct {
	out, err string
	code     int
}

func terminalFor(t *testing.T) terminal {
	t.Helper()
	f := terminal{Ferry: ferrytest.For(t), t: t}
	f.kubeconfig = f.kubeconfigOf("hub", "w1", "w2")
	return f
}

// kubeconfigOf writes a kubeconfig with a context for each cluster's admin, the first of which is
// current.
func (f terminal) kubeconfigOf(clusters ...string) string {
	f.t.Helper()
	all := clientcmdapi.NewConfig()
	for _, name := range clusters {
		one, err := clientcmd.Load(f.Cluster(name).KubeconfigBytes())
		f.check(err)
		current := one.Contexts[one.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: f.NS}
	}
	all.CurrentContext = clusters[0]
	file := filepath.Join(f.t.TempDir(), "kubeconfig")
	f.check(clientcmd.WriteToFile(*all, file))
	return file
}

func (f terminal) check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// run runs the plugin.
func (f terminal) run(args ...string) outcome {
	f.t.Helper()
	return f.with("", args...)
}

// with runs the plugin with something on its standard input.
func (f terminal) with(input string, args ...string) outcome {
	f.t.Helper()
	program, err := product.Program("kubectl-jobferry")
	f.check(err)
	cmd := exec.CommandContext(f.Context(), program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig, "HOME="+f.t.TempDir())
	cmd.Stdin = strings.NewReader(input)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	if cmd.ProcessState == nil {
		f.t.Fatal(err)
	}
	f.t.Logf("$ kubectl jobferry %s\n%s%s(exit code %d)", strings.Join(args, " "), out.String(), errOut.String(), cmd.ProcessState.ExitCode())
	return outcome{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
}

// ok runs the plugin, which must succeed.
func (f terminal) ok(args ...string) outcome {
	f.t.Helper()
	o := f.run(args...)
	if o.code != 0 {
		f.t.Fatalf("exit code %d", o.code)
	}
	return o
}

// fails runs the plugin, which must fail with this code, and say this.
func (f terminal) fails(code int, says []string, args ...string) outcome {
	f.t.Helper()
	o := f.run(args...)
	if o.code != code {
		f.t.Fatalf("exit code %d, want %d", o.code, code)
	}
	f.says(o.err, says...)
	return o
}

// blanks are as many as a column needs.
var blanks = regexp.MustCompile(` +`)

// says checks that a text has all of these, whatever the width of its columns.
func (f terminal) says(text string, wanted ...string) {
	f.t.Helper()
	text = blanks.ReplaceAllString(text, " ")
	for _, part := range wanted {
		if !strings.Contains(text, blanks.ReplaceAllString(part, " ")) {
			f.t.Errorf("it doesn't say %q", part)
		}
	}
}

// register makes a cluster a worker in the pool "main", and has it let go when the test ends.
func (f terminal) register(name string, more ...string) outcome {
	f.t.Helper()
	if !slices.Contains(more, "--namespaces") {
		more = append(more, "--all-namespaces")
	}
	o := f.ok(append([]string{"register", name, "--worker-context", name, "--labels", fmt.Sprintf("name=%s,pool=main", name)}, more...)...)
	f.letGoAfter(name)
	f.WorkerUntil(name, ferrytest.Ready)
	f.LeaveWorker(name)
	return o
}

// letGoAfter cleans up after a test; a Job that fits nowhere else keeps a worker for a minute. It's
// called while the manager runs that does it: what starts last ends first.
func (f terminal) letGoAfter(name string) {
	f.t.Cleanup(func() {
		f.afterwards("unregister", name, "--worker-context", name, "--policy", "Orphan", "--yes", "--timeout", "100s")
	})
}

// afterwards runs the plugin when the test's own context has ended.
func (f terminal) afterwards(args ...string) {
	program, err := product.Program("kubectl-jobferry")
	if err != nil {
		f.t.Error(err)
		return
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Errorf("kubectl jobferry %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// hubUID is the identity of the hub.
func (f terminal) hubUID() types.UID {
	f.t.Helper()
	system, err := f.Hub.Client().CoreV1().Namespaces().Get(f.Context(), metav1.NamespaceSystem, metav1.GetOptions{})
	f.check(err)
	return system.UID
}
