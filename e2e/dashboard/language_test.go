package dashboard

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jobferry/jobferry/e2e/dashboard/browser"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// scene is a hub with workers, and a browser that looks at it.
type scene struct {
	*ferrytest.Ferry
	*browser.Browser
	t *testing.T
}

func open(t *testing.T) *scene {
	t.Helper()
	b := browser.Open(t) // first: without a browser, nothing is started
	return &scene{ferrytest.For(t), b, t}
}

// settle has the Jobs in a namespace with a name that looks well in pictures.
func (s *scene) settle(namespace string) {
	s.t.Helper()
	s.NS = namespace
	s.Kubectl(s.Hub, "", "create", "namespace", s.NS)
	s.Kubectl(s.Hub, "", "label", "namespace", s.NS, v1alpha1.LabelDispatch+"="+v1alpha1.DispatchAllowed)
}

func (s *scene) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// served is a dashboard as a process.
type served struct {
	// URL has the token, base hasn't.
	URL, base string
	cmd       *exec.Cmd
}

// serve starts the dashboard as an admin, whose way to the hub can be cut.
func (s *scene) serve(args ...string) *served {
	s.t.Helper()
	return s.start(s.Hub.ProxyKubeconfigBytes(), args...)
}

// serveFor starts it for another user.
func (s *scene) serveFor(user string) *served {
	s.t.Helper()
	kubeconfig, err := s.Hub.UserKubeconfigBytes(user)
	s.check(err)
	return s.start(kubeconfig)
}

func (s *scene) start(kubeconfig []byte, args ...string) *served {
	s.t.Helper()
	program, err := product.Program("kubectl-jobferry")
	s.check(err)
	cmd := exec.Command(program, append([]string{"dashboard"}, args...)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig(kubeconfig))
	errors := &bytes.Buffer{}
	cmd.Stderr = errors
	printed, err := cmd.StdoutPipe()
	s.check(err)
	s.check(cmd.Start())
	s.t.Cleanup(func() {
		if err := stop(cmd); err != nil {
			s.t.Errorf("the dashboard ended with %v:\n%s", err, errors)
		}
	})
	s.t.Cleanup(s.Leave)
	address, err := bufio.NewReader(printed).ReadString('\n')
	if err != nil {
		s.t.Fatalf("no address: %v\n%s", err, errors)
	}
	address = strings.TrimSpace(address)
	base, _, _ := strings.Cut(address, "/?")
	return &served{URL: address, base: base, cmd: cmd}
}

// stop interrupts a process as Ctrl-C does.
func stop(cmd *exec.Cmd) error {
	if cmd.ProcessState != nil {
		return nil
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	return cmd.Wait()
}

// kubeconfig is a file whose context is called as users would, in the test's namespace.
func (s *scene) kubeconfig(content []byte) string {
	s.t.Helper()
	config, err := clientcmd.Load(content)
	s.check(err)
	context := config.Contexts[config.CurrentContext]
	context.Namespace = s.NS
	config.Contexts["prod"], config.CurrentContext = context, "prod"
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	s.check(clientcmd.WriteToFile(*config, file))
	return file
}

// picture writes a picture of the docs, if they are asked for and this is one.
func (s *scene) picture(name string) {
	s.t.Helper()
	if *pictures != "" && name != "" {
		s.Picture(filepath.Join(*pictures, name+".png"))
	}
}

// looks checks what every page must do, in both schemes and at both widths: axe-core finds nothing.
// It takes a picture for the docs, if it has a name for it.
func (s *scene) looks(name string) {
	s.t.Helper()
	s.Accessible()
	s.Dark(true)
	s.Readable()
	s.Dark(false)
	s.Window(360, 740)
	s.AccessibleLayout()
	s.Is("document.documentElement.scrollWidth <= innerWidth") // no page is wider than a phone
	s.Window(1280, 800)
	s.picture(name)
}

// requests has each Pod ask for a resource.
func requests(name corev1.ResourceName, amount string) rigtest.Option {
	return func(j *batchv1.Job) {
		list := corev1.ResourceList{name: resource.MustParse(amount)}
		j.Spec.Template.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
	}
}

func parallelism(n int32) rigtest.Option {
	return func(j *batchv1.Job) { j.Spec.Parallelism = &n }
}
