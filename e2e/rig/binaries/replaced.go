package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
)

// BuildReplaced builds a program that belongs to no release from another source of one of its
// modules: a folder. The folder of the program gets the module files, too, and isn't the cache.
func BuildReplaced(ctx context.Context, name, target, path, source string) error {
	all := unreleased()
	i := slices.IndexFunc(all, func(p program) bool { return p.name == name })
	if i < 0 {
		return fmt.Errorf("the rig has no tool %q", name)
	}
	versions, err := versionsDir()
	if err != nil {
		return err
	}
	dir, folder := filepath.Join(versions, all[i].module), filepath.Dir(target)
	goMod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return err
	}
	goSum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return err
	}
	replaced, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return err
	}
	if err := replaced.AddReplace(path, "", source, ""); err != nil {
		return err
	}
	if goMod, err = replaced.Format(); err != nil {
		return err
	}
	modFile := filepath.Join(folder, name+".mod")
	if err := os.WriteFile(modFile, goMod, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, name+".sum"), goSum, 0o600); err != nil {
		return err
	}
	return build(ctx, dir, all[i].pkg, target, "", "-modfile="+modFile)
}
