package nodes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/conformance"
	"github.com/jobferry/jobferry/e2e/conformance/scratch"
	"github.com/jobferry/jobferry/e2e/real"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// suite is a compiled program of cases.
type suite struct {
	// program is its file in the folder of the materials.
	program string
	// focus is the pattern of what is chosen of its cases.
	focus string
	// flags are what its processes take besides those for a kubeconfig and of Ginkgo.
	flags []string
}

// What is chosen of Kubernetes' cases: those of Jobs, on the hub also those of what makes and
// removes Jobs.
const (
	ofJobs = `\[sig-apps\] Job `
	onHub  = `\[sig-apps\] (Job|CronJob|TTLAfterFinished) |\[sig-cli\] .*job`
)

const (
	kubernetesProgram = "e2e.test"
	jobSetProgram     = "jobset-e2e.test"
)

// suiteOf is what runs in a part.
func suiteOf(part conformance.Part, m *real.Materials) suite {
	if part == conformance.JobSet {
		return suite{program: jobSetProgram, focus: "."}
	}
	s := suite{program: kubernetesProgram, focus: ofJobs, flags: []string{
		"--provider=local", "--kube-api-content-type=application/json", "--kubectl-path=" + filepath.Join(m.Bin, "kubectl"),
	}}
	if part == conformance.Hub {
		s.focus = onHub
	}
	return s
}

// Steps compile the cases of the parts, those of Kubernetes of the release that the clusters have,
// and give the nodes their images.
func (o Options) Steps() []real.Step {
	var steps []real.Step
	if slices.ContainsFunc(o.Parts, func(p conformance.Part) bool { return p != conformance.Integration && p != conformance.JobSet }) {
		steps = append(steps, real.Step{What: "Kubernetes' e2e cases for Jobs (the first time: 10 minutes)", Make: buildKubernetes})
	}
	if slices.Contains(o.Parts, conformance.JobSet) {
		steps = append(steps, real.JobSet, real.Step{What: "JobSet's e2e cases", Make: buildJobSet})
	}
	return steps
}

func buildKubernetes(m *real.Materials, ctx context.Context) error {
	module, err := scratch.New(ctx, filepath.Join(m.Dir, "suite"), binaries.Current, false)
	if err != nil {
		return err
	}
	main, err := os.ReadFile(checkout.Path("e2e", "conformance", "nodes", "testdata", "main_test.go"))
	if err != nil {
		return err
	}
	if err := module.WriteAll(map[string]string{"main_test.go": string(main)}); err != nil {
		return err
	}
	program := filepath.Join(m.Dir, kubernetesProgram)
	if err := module.CompileTest(ctx, program); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, program, "-images").Output()
	if err != nil {
		return fmt.Errorf("names of the cases' images: %w", err)
	}
	names := strings.Fields(string(out))
	if len(names) != 2 {
		return fmt.Errorf("names of the cases' images: %q", out)
	}
	if err := m.AddImage(real.Busybox, names[0]); err != nil {
		return err
	}
	return m.AddImage(real.Pause, names[1])
}

// bashImage is the image of all containers in JobSet's cases.
const bashImage = "docker.io/library/bash:latest"

func buildJobSet(m *real.Materials, ctx context.Context) error {
	module, err := scratch.NewOf(ctx, filepath.Join(m.Dir, "jobset-suite"), "jobset", "sigs.k8s.io/jobset", false)
	if err != nil {
		return err
	}
	if err := module.CompileTestOf(ctx, filepath.Join(m.Dir, jobSetProgram), "test/e2e"); err != nil {
		return err
	}
	return m.AddImage(real.Bash, bashImage)
}
