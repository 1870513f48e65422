package terraform_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/jobferry/jobferry/e2e/clients"
	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
	"github.com/jobferry/jobferry/pkg/api/hubstate"
)

// Through the whole life of a Job, Terraform sees nothing to do but what its user changes.
func TestTerraform(t *testing.T) {
	f := clients.For(t)
	f.RunManager()
	for _, worker := range []string{"w1", "w2"} {
		f.LeaveWorker(worker)
	}
	tf := start(t, f)

	tf.write("a")
	tf.apply("1 added, 0 changed, 0 destroyed")
	f.HubJobUntil("job", func(j *batchv1.Job) bool { return hubstate.Get(j, hubstate.Waits) != "" })
	tf.expectNoDiff("while the Job waits for a worker")

	f.Register("w1", "w2")
	from, to := ferrytest.ClusterOf(f.HubJobUntil("job", rigtest.Running(1))), "w1"
	if from == to {
		to = "w2"
	}
	mirror := f.MirrorUntil(from, "job", rigtest.Running(1))
	tf.expectNoDiff("while it runs")
	tf.apply("0 added, 0 changed, 0 destroyed")

	tf.write("b")
	tf.apply("0 added, 1 changed, 0 destroyed")
	changed := f.MirrorUntil(from, "job", func(m *batchv1.Job) bool { return m.Labels["team"] == "b" })
	if changed.UID != mirror.UID {
		t.Error("a change of a label made the mirror anew")
	}
	tf.expectNoDiff("after a change")

	f.Kubectl(f.Hub, "", "annotate", "job", "job", "-n", f.NS, "example.org/by=somebody-else")
	if tf.differs() == "" {
		t.Error("Terraform doesn't see what somebody else annotated: this test would see nothing of ours")
	}
	tf.apply("0 added, 1 changed, 0 destroyed")

	f.SetWorker(from, `{"drain":true}`)
	f.HubJobUntil("job", ferrytest.All(ferrytest.IsAt(to), rigtest.Running(1)))
	tf.expectNoDiff("after a move")
	tf.apply("0 added, 0 changed, 0 destroyed")

	for _, pod := range f.Pods(f.Cluster(to)) {
		f.EndPod(to, pod.Name)
	}
	f.HubJobUntil("job", rigtest.Complete)
	tf.expectNoDiff("after its end")
	tf.write("c")
	tf.apply("0 added, 1 changed, 0 destroyed")
	tf.expectNoDiff("after a change of what has ended")

	tf.run("destroy", "-auto-approve")
	f.HubJobGone("job")
	f.MirrorGone(to, "job")
}

// Terraform is in a folder of its own, with a Job in its configuration.
type terraform struct {
	t                 *testing.T
	f                 *ferrytest.Ferry
	program, dir, cli string
}

// start builds the programs, unless the cache has them. The provider is taken as it was built, so
// that Terraform asks no registry.
func start(t *testing.T, f *ferrytest.Ferry) terraform {
	t.Helper()
	tool := func(name string) string {
		program, err := binaries.Tool(t.Context(), name, binaries.Lines(os.Stderr))
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	dir := t.TempDir()
	tf := terraform{t, f, tool(binaries.Terraform), dir, filepath.Join(dir, "cli.tfrc")}
	tf.file(tf.cli, fmt.Sprintf("provider_installation {\n  dev_overrides { \"hashicorp/kubernetes\" = %q }\n  direct {}\n}\n",
		filepath.Dir(tool(binaries.TerraformProvider))))
	return tf
}

func (tf terraform) file(name, content string) {
	tf.t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		tf.t.Fatal(err)
	}
}

// write writes the configuration: a Job with one label.
func (tf terraform) write(team string) {
	tf.t.Helper()
	tf.file(filepath.Join(tf.dir, "main.tf"), fmt.Sprintf(`
terraform {
  required_providers {
    kubernetes = { source = "hashicorp/kubernetes" }
  }
}

provider "kubernetes" {
  config_path = %q
}

resource "kubernetes_job_v1" "job" {
  wait_for_completion = false
  metadata {
    name      = "job"
    namespace = %q
    labels    = { team = %q }
  }
  spec {
    template {
      metadata {
        labels = { "rig.jobferry.dev/run-for" = "forever" }
      }
      spec {
        restart_policy = "Never"
        container {
          name  = "main"
          image = "example.org/main"
        }
      }
    }
  }
}
`, tf.f.Hub.Kubeconfig(), tf.f.NS, team))
}

// command returns what Terraform prints, and its exit code.
func (tf terraform) command(arguments ...string) (string, int) {
	tf.t.Helper()
	cmd := exec.CommandContext(tf.f.Context(), tf.program, append(arguments, "-input=false", "-no-color")...)
	cmd.Dir = tf.dir
	cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+tf.cli, "CHECKPOINT_DISABLE=1", "HOME="+tf.dir)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		tf.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func (tf terraform) run(arguments ...string) string {
	tf.t.Helper()
	out, code := tf.command(arguments...)
	if code != 0 {
		tf.t.Fatalf("terraform %v: exit code %d\n%s", arguments, code, out)
	}
	return out
}

func (tf terraform) apply(want string) {
	tf.t.Helper()
	if out := tf.run("apply", "-auto-approve"); !strings.Contains(out, want) {
		tf.t.Errorf("want %q:\n%s", want, out)
	}
}

// differs returns the plan, if it has anything to do.
func (tf terraform) differs() string {
	tf.t.Helper()
	const somethingToDo = 2
	out, code := tf.command("plan", "-detailed-exitcode")
	if code != 0 && code != somethingToDo {
		tf.t.Fatalf("terraform plan: exit code %d\n%s", code, out)
	}
	if code == 0 {
		return ""
	}
	return out
}

func (tf terraform) expectNoDiff(when string) {
	tf.t.Helper()
	if plan := tf.differs(); plan != "" {
		tf.t.Errorf("%s, the plan is:\n%s", when, plan)
	}
}
