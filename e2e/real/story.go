package real

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// patience is how long each step of the story may take. They take seconds; the rest is for machines
// busy with else.
const patience = 3 * time.Minute

// Chapter is a part of a story.
type Chapter func(*Story, context.Context) error

// Chapters are those of the story of docs/.
var Chapters = []Chapter{
	(*Story).Install, (*Story).RegisterWest, (*Story).RegisterEdge,
	(*Story).submit, (*Story).ends, (*Story).logs, (*Story).sessions, (*Story).shown, (*Story).InstallJobSet, (*Story).jobSets, (*Story).suspend, (*Story).loss, (*Story).remove,
}

// Tell is the work of the sandbox's first process: it makes the world of the materials in dir, and
// tells a story there.
func Tell(ctx context.Context, dir string, out io.Writer, chapters ...Chapter) error {
	m, err := ReadMaterials(dir)
	if err != nil {
		return err
	}
	began := time.Now()
	world, err := NewWorld(ctx, m)
	if err != nil {
		return err
	}
	defer func() { _ = world.Stop() }() // all ends with this process anyway
	s := &Story{World: world, out: out}
	s.say(began, "a hub and two workers, with a node each")
	for _, chapter := range chapters {
		if err := chapter(s, ctx); err != nil {
			return errors.Join(err, errors.New(s.state(ctx)))
		}
	}
	fmt.Fprintf(out, "all as it should be, after %s\n", time.Since(began).Round(time.Second))
	return nil
}

// Story is told by commands, as a user types them, and what they must show.
type Story struct {
	*World
	mu  sync.Mutex
	out io.Writer
}

func (s *Story) say(began time.Time, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "ok  %6.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
}

// step runs one step, and tells how long it took.
func (s *Story) step(ctx context.Context, what string, do func(context.Context) error) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.say(began, "%s", what)
	return nil
}

// run runs a command, with input, and returns what it writes on standard output.
func (s *Story) run(ctx context.Context, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.program(args[0]), args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdin = s.environment(), s.materials.Root, strings.NewReader(input)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, &out, &complaints)
	}
	return out.String(), nil
}

// program finds one of the story's programs, which aren't on our own PATH.
func (s *Story) program(name string) string { return filepath.Join(s.materials.Bin, name) }

// Do runs commands, as one step.
func (s *Story) Do(ctx context.Context, what string, commands ...string) error {
	return s.step(ctx, what, s.all(commands...))
}

// all runs commands in order, until one fails.
func (s *Story) all(commands ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, command := range commands {
			if _, err := s.run(ctx, "", strings.Fields(command)...); err != nil {
				return err
			}
		}
		return nil
	}
}

// shows runs a command whose output must hold a text.
func (s *Story) shows(ctx context.Context, want, command string) error {
	out, err := s.run(ctx, "", strings.Fields(command)...)
	if err == nil && !strings.Contains(out, want) {
		err = fmt.Errorf("%s: want %q in:\n%s", command, want, out)
	}
	return err
}

// start creates a Job for a worker, whose name stands for WORKER in the manifest, and waits until
// its Pod is ready.
func (s *Story) start(ctx context.Context, manifest, worker, job string) error {
	if _, err := s.run(ctx, strings.ReplaceAll(manifest, "WORKER", worker), "kubectl", "create", "-f", "-"); err != nil {
		return err
	}
	return s.isReady(ctx, job)
}

// isReady waits until a Pod of a Job is ready.
func (s *Story) isReady(ctx context.Context, job string) error {
	return s.all("kubectl wait --timeout=2m --for=jsonpath={.status.ready}=1 job/" + job)(ctx)
}

// inBoth does the same for both workers at once.
func (s *Story) inBoth(ctx context.Context, what string, do func(ctx context.Context, worker string) error) error {
	var group sync.WaitGroup
	errs := make([]error, 2)
	for i, worker := range []string{West, Edge} {
		group.Go(func() {
			errs[i] = s.step(ctx, worker+": "+what, func(ctx context.Context) error { return do(ctx, worker) })
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// state is what all clusters show, for the reader of a failure.
func (s *Story) state(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var text strings.Builder
	for _, name := range names {
		for _, what := range []string{"pods,jobs --all-namespaces -o wide", "events --all-namespaces"} {
			out, err := s.run(ctx, "", strings.Fields("kubectl --context "+name+" get "+what)...)
			fmt.Fprintf(&text, "--- %s: %s (error %v)\n%s\n", name, what, err, out)
		}
	}
	for _, name := range []string{Hub, Edge} {
		out, err := s.run(ctx, "", strings.Fields("kubectl --context "+name+" -n jobferry-system logs --tail=30 --prefix --all-containers -l app.kubernetes.io/name")...)
		fmt.Fprintf(&text, "--- %s: our Pods' logs (error %v)\n%s\n", name, err, out)
	}
	return text.String() + s.Logs()
}
