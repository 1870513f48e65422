package image

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Builder carries out the stages of a Dockerfile. It mounts file systems: run it as root, in a
// mount namespace of its own.
type Builder struct {
	// Context is the folder that COPY copies from.
	Context string
	// Work is an empty folder for the stages' files.
	Work string
	// Args are the build arguments, and what a builder sets by itself, such as TARGETARCH.
	Args map[string]string
	// Toolchain are folders of this machine, by where the base image of a stage that compiles has
	// them.
	Toolchain map[string]string
	// Env is the environment of RUN in such a stage.
	Env []string
}

// built is a stage that was carried out.
type built struct {
	root string
	args map[string]string
	dir  string // WORKDIR
}

// Build carries out the stages, and returns the folder of the last one's files.
func (b *Builder) Build(ctx context.Context, stages []Stage) (string, error) {
	done := map[string]*built{}
	var last *built
	for i, stage := range stages {
		now, err := b.begin(i, stage)
		if err != nil {
			return "", fmt.Errorf("FROM %s: %w", stage.Base, err)
		}
		for _, step := range stage.Steps {
			if err := b.step(ctx, now, done, step); err != nil {
				return "", fmt.Errorf("line %d: %s %s: %w", step.Line, step.Verb, step.Text, err)
			}
		}
		done[stage.Name], last = now, now
	}
	return last.root, nil
}

// begin makes the root of a stage: empty, or this machine's under an overlay.
func (b *Builder) begin(number int, stage Stage) (*built, error) {
	folder := filepath.Join(b.Work, fmt.Sprintf("stage-%d", number))
	root := filepath.Join(folder, "root")
	now := &built{root: root, args: maps.Clone(b.Args), dir: "/"}
	if stage.Base == Scratch {
		return now, os.MkdirAll(root, 0o755)
	}
	upper, scratch := filepath.Join(folder, "upper"), filepath.Join(folder, "work")
	for _, dir := range []string{root, upper, scratch} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if err := syscall.Mount("overlay", root, "overlay", 0, "lowerdir=/,upperdir="+upper+",workdir="+scratch); err != nil {
		return nil, fmt.Errorf("overlay over this machine's root: %w", err)
	}
	mounts := map[string]string{"/proc": "/proc", "/dev": "/dev"}
	maps.Copy(mounts, b.Toolchain)
	for _, inside := range slices.Sorted(maps.Keys(mounts)) {
		if err := bind(mounts[inside], filepath.Join(root, inside)); err != nil {
			return nil, err
		}
	}
	return now, nil
}

func bind(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("%s on %s: %w", from, to, err)
	}
	return nil
}

func (b *Builder) step(ctx context.Context, now *built, done map[string]*built, step Step) error {
	switch step.Verb {
	case "WORKDIR":
		now.dir = step.Text
		return os.MkdirAll(filepath.Join(now.root, now.dir), 0o755)
	case "ARG":
		for _, word := range strings.Fields(step.Text) {
			name, value, _ := strings.Cut(word, "=")
			if _, given := now.args[name]; !given {
				now.args[name] = value
			}
		}
		return nil
	case "COPY":
		return b.copy(ctx, now, done, step)
	default:
		return b.run(ctx, now, step)
	}
}

// copy leaves the details to cp: what is copied into a folder that exists, what of a folder's
// content.
func (b *Builder) copy(ctx context.Context, now *built, done map[string]*built, step Step) error {
	root := b.Context
	for _, name := range step.Flag("from") {
		stage, ok := done[name]
		if !ok {
			return fmt.Errorf("no stage %s above", name)
		}
		root = stage.root
	}
	words := strings.Fields(step.Text)
	if len(words) < 2 {
		return fmt.Errorf("want sources and a destination")
	}
	to := words[len(words)-1]
	target := filepath.Join(now.root, to)
	if !filepath.IsAbs(to) {
		target = filepath.Join(now.root, now.dir, to)
	}
	for _, word := range words[:len(words)-1] {
		from, into := filepath.Join(root, word), target
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
			from += "/." // a folder's content is copied, not the folder
		case strings.HasSuffix(to, "/"):
			into = filepath.Join(target, filepath.Base(word))
		}
		if err := os.MkdirAll(filepath.Dir(into), 0o755); err != nil {
			return err
		}
		if out, err := exec.CommandContext(ctx, "cp", "-aL", from, into).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	return nil
}

// run runs a command in the stage's root, with the stage's arguments as environment variables. Its
// cache mounts are the machine's own folders, as far as the toolchain has them.
func (b *Builder) run(ctx context.Context, now *built, step Step) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", step.Text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: now.root}
	cmd.Dir = now.dir
	cmd.Env = slices.Clone(b.Env)
	for _, name := range slices.Sorted(maps.Keys(now.args)) {
		cmd.Env = append(cmd.Env, name+"="+now.args[name])
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}
