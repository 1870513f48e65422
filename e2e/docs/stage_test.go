package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/docs"
	"github.com/jobferry/jobferry/e2e/product"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// stage is what the reader of the docs has: a hub and two workers without anything in them,
// contexts for them, and the programs.
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
		if _, err := product.Build(t.Context(), s.bin, program); err != nil {
			t.Fatal(err)
		}
	}
	s.writeKubeconfig()
	return s
}

func (s *stage) writeKubeconfig() {
	s.t.Helper()
	all, err := rig.MergeKubeconfigs(s.Cluster(hub), s.Cluster(west), s.Cluster(east))
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "kubeconfig"), all, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// output is what commands print.
type output struct{ out, err string }

// shows says whether a terminal may show this. Whether what goes to standard error is among it is
// up to the page, and so is which comes first: the two are different streams.
func (o output) shows(page string) bool {
	return docs.Matches(page, o.out) || docs.Matches(page, o.err+o.out) || docs.Matches(page, o.out+o.err)
}

func (o output) String() string { return o.out + o.err }

// bash runs commands as the reader types them, in the checkout's folder.
func (s *stage) bash(ctx context.Context, commands, input string) (output, error) {
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands)
	cmd.Dir = checkout.Path()
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "KUBECONFIG="+filepath.Join(s.dir, "kubeconfig"), "PATH="+s.bin+":"+os.Getenv("PATH"))
	cmd.Stdin = strings.NewReader(input)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	return output{out.String(), errs.String()}, err
}
