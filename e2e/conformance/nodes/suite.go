package nodes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/conformance/scratch"
	"github.com/jobferry/jobferry/e2e/real"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
)

// suiteProgram is the compiled cases, in the folder of the materials.
const suiteProgram = "e2e.test"

// Suite is the step that compiles the cases, of the release that the clusters have, and gives the
// nodes their images.
var Suite = real.Step{What: "Kubernetes' e2e cases for Jobs (the first time: 10 minutes)", Make: buildSuite}

func buildSuite(m *real.Materials, ctx context.Context) error {
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
	program := filepath.Join(m.Dir, suiteProgram)
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
