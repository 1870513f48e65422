package binaries

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

// BuildOwn builds a main package of this repository from the packages of a release. The package
// lies in a folder with a go.mod of its own, which only keeps it out of the module around it: the
// module of the release takes that one's place. The flags are those of the rig's own programs, so
// that their compiled packages are used.
func BuildOwn(ctx context.Context, release Release, dir, target string) error {
	versions, err := versionsDir()
	if err != nil {
		return err
	}
	args := append([]string{"build", "-modfile=" + filepath.Join(versions, "v"+string(release), "go.mod"), "-o", target}, BuildFlags("")...)
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	cmd.Dir = dir
	cmd.Env = compileEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s from Kubernetes %s: %w\n%s", filepath.Base(dir), release, err, tail(string(out), 20))
	}
	return nil
}
