package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/jobferry/jobferry/e2e/demo/scenario"
	"github.com/jobferry/jobferry/e2e/demo/screen"
	"github.com/jobferry/jobferry/e2e/demo/state"
	"github.com/jobferry/jobferry/e2e/demo/view"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/reap"
)

// Time limits. Without trouble, both take some seconds.
const (
	readyTime = 1 * time.Minute
	jobsTime  = 3 * time.Minute
)

// logLines of each of Jobferry's programs are shown when something went wrong.
const logLines = 25

// ErrUnexpected means that the demo ran, but not everything ended as it should. The output says
// what.
var ErrUnexpected = errors.New("not everything ended as it should")

// demo is one run.
type demo struct {
	Options
	entries []scenario.Entry
	board   *board
	dir     string // for programs, credentials and logs of this run

	hub     *rig.Cluster
	workers []*rig.Cluster

	// description is what the plugin says of the divided Job while it runs.
	description string

	mu        sync.Mutex
	processes []program
}

// Run runs the demo. It returns nil if every Job ended as it should; the error of an ended context
// if it was interrupted; ErrUnexpected, or what went wrong. All clusters and files are gone when it
// returns.
func Run(ctx context.Context, o Options) (err error) {
	entries, err := scenario.Load()
	if err != nil {
		return err
	}
	d := &demo{
		Options: o, entries: entries, board: newBoard(state.New(time.Now(), entries)),
		workers: make([]*rig.Cluster, len(workerShapes)),
	}
	if err := d.makeFolder(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	played := d.playOnScreen(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	d.report(played)
	if o.Keep && d.submitted() {
		d.keep(ctx)
	}
	return d.result(played)
}

// bin is the folder of the programs that somebody needs who looks around, and of Jobferry's own.
func (d *demo) bin() string { return filepath.Join(d.dir, "bin") }

func (d *demo) program(name string) string { return filepath.Join(d.bin(), name) }

// kubeconfig is a file with a context for each cluster. That of the hub is the current one.
func (d *demo) kubeconfig() string { return filepath.Join(d.dir, "kubeconfig") }

func (d *demo) makeFolder() error {
	reaper, err := reap.Shared()
	if err != nil {
		return err
	}
	if d.dir, err = os.MkdirTemp("", "jobferry-demo-"); err != nil {
		return err
	}
	if err := reaper.WatchDir(d.dir); err != nil {
		return err
	}
	// What the client library has to say would spoil the picture.
	log, err := os.Create(filepath.Join(d.dir, "client.log"))
	if err != nil {
		return err
	}
	klog.LogToStderr(false)
	klog.SetOutput(log)
	return nil
}

// playOnScreen plays while the display shows it.
func (d *demo) playOnScreen(ctx context.Context) error {
	display := screen.New(d.Out)
	showing, hide := context.WithCancel(context.Background())
	var shown sync.WaitGroup
	shown.Go(func() { d.board.show(showing, display) })
	defer func() {
		hide()
		shown.Wait()
		display.Close()
	}()
	return d.play(ctx)
}

// play goes from nothing to the Jobs' ends.
func (d *demo) play(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := d.prepare(ctx); err != nil {
		return err
	}
	wait, err := d.install(ctx, fail)
	if err != nil {
		return err
	}
	defer func() {
		fail(nil)
		wait()
	}()
	if err := d.register(ctx); err != nil {
		return err
	}
	if err := d.submit(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeoutCause(ctx, jobsTime, fmt.Errorf("not every Job has ended after %s", jobsTime))
	defer cancel()
	if err := d.describeDivided(limited); err != nil {
		return err
	}
	if err := d.board.until(limited, (*state.State).Settled); err != nil {
		return err
	}
	return checkHub(ctx, d.board, d.hub.Client())
}

// submitted says whether there is something to look at.
func (d *demo) submitted() bool {
	s, _ := d.board.read()
	return slices.ContainsFunc(s.Jobs, func(j state.Job) bool { return j.Phase != state.Absent })
}

// report writes the table; before it, if something is wrong, the ends of the logs.
func (d *demo) report(played error) {
	if d.result(played) != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, p := range d.processes {
			d.print("", fmt.Sprintf("The end of %s's log:", p.name), p.LogTail(logLines))
		}
	}
	if d.description != "" {
		d.print("", "While its shards ran:", "", "  $ "+describe, view.Excerpt(d.description, "Shards"))
	}
	if d.submitted() {
		s, _ := d.board.read()
		d.print(view.Result(s, time.Now(), screen.Options(d.Out))...)
	}
}

func (d *demo) print(lines ...string) {
	_, _ = io.WriteString(d.Out, strings.Join(lines, "\n")+"\n")
}

// result judges the run.
func (d *demo) result(played error) error {
	s, _ := d.board.read()
	switch {
	case played != nil:
		return played
	case len(s.Problems()) > 0:
		return ErrUnexpected
	}
	return nil
}

// close ends everything.
func (d *demo) close() error {
	var errs []error
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.processes {
		errs = append(errs, p.End(stopTime))
	}
	errs = append(errs, rig.StopAll(append(slices.Clone(d.workers), d.hub)...), os.RemoveAll(d.dir))
	return errors.Join(errs...)
}
