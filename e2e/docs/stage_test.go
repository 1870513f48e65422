package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/e2e/worker/play"
)

// stage is what the reader of the docs has: a hub and two workers without anything in them, contexts for them, and the
// programs.
type stage struct {
	*rigtest.Fixture
	t *testing.T
	// dir is the reader's home, bin a folder of programs.
	dir, bin string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{Fixture: rigtest.For(t), t: t, dir: dir, bin: filepath.Join(dir, "bin")}
	if err := os.Mkdir(s.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	helm, err := binaries.Tool(t.Context(), binaries.Helm, binaries.Lines(os.Stderr))
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]string{"helm": helm, "kubectl": s.Cluster(hub).KubectlProgram()} {
		if err := os.Symlink(program, filepath.Join(s.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"kubectl-jobferry", "jobferry-manager", "jobferry-worker"} {
		s.compile(program)
	}
	s.writeKubeconfig()
	return s
}

// root is the folder of the checkout.
func root(t *testing.T) string {
	t.Helper()
	dir, err := play.Source()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (s *stage) compile(program string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "go", "build", "-o", filepath.Join(s.bin, program), "./cmd/"+program)
	cmd.Dir = root(s.t)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("build %s: %v\n%s", program, err, out)
	}
}

func (s *stage) writeKubeconfig() {
	s.t.Helper()
	all := clientcmdapi.NewConfig()
	for _, name := range []string{hub, west, east} {
		one, err := clientcmd.Load(s.Cluster(name).KubeconfigBytes())
		if err != nil {
			s.t.Fatal(err)
		}
		all.Clusters[name], all.AuthInfos[name], all.Contexts[name] = one.Clusters[name], one.AuthInfos[name], one.Contexts[name]
	}
	all.CurrentContext = hub
	if err := clientcmd.WriteToFile(*all, filepath.Join(s.dir, "kubeconfig")); err != nil {
		s.t.Fatal(err)
	}
}

// bash runs commands as the reader types them, in the checkout's folder. It returns the standard output, and all that a
// terminal shows.
func (s *stage) bash(ctx context.Context, commands, input string) (stdout, shown string, err error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = root(s.t)
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "KUBECONFIG="+filepath.Join(s.dir, "kubeconfig"), "PATH="+s.bin+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(input)
	terminal := &terminal{}
	cmd.Stdout, cmd.Stderr = stream{terminal, &terminal.out}, stream{terminal, &strings.Builder{}}
	err = cmd.Run()
	return terminal.out.String(), terminal.all.String(), err
}

// terminal keeps what is written to it, in the order of its coming.
type terminal struct {
	sync.Mutex
	out, all strings.Builder
}

// stream is one of the two that a command writes to.
type stream struct {
	*terminal
	own *strings.Builder
}

func (s stream) Write(p []byte) (int, error) {
	s.Lock()
	defer s.Unlock()
	s.all.Write(p)
	return s.own.Write(p)
}
