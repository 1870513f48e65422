package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/jobview"
	"github.com/jobferry/jobferry/pkg/mirror"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/show"
	"github.com/jobferry/jobferry/pkg/util/selectors"
)

// jobWatch prints Jobs, and then each that users would see differently.
type jobWatch struct {
	cli   *cli
	hub   client.WithWatch
	flags *listFlags
	out   output
	table *show.TableWriter
	// namespace is empty for all namespaces.
	namespace string
	workers   jobview.Workers
	reasons   *jobview.ReasonsOfKnown
	// known are the Jobs, as they were printed or left out.
	known map[jobview.Subject]knownJob
	// later comes when Jobs are to be read that an event selects or not; pause is until then, if they
	// couldn't be read.
	later <-chan time.Time
	pause wait.Backoff
}

// watchJobs prints the Jobs and what changes, until the context ends. listed are those in all
// states.
func (c *cli) watchJobs(
	ctx context.Context, f *listFlags, out output, found *foundJobs, listed []batchv1.Job, names []string, workers jobview.Workers,
) error {
	if f.sortBy != "" {
		c.say("warning: --watch requested, --sort-by will be ignored for watch events received")
	}
	config, err := c.hubConfig()
	if err != nil {
		return err
	}
	hub, err := access.NewWatchClient(config)
	if err != nil {
		return err
	}
	w := &jobWatch{
		cli: c, hub: hub, flags: f, out: out, table: show.NewTableWriter(c.Out, c.palette()), namespace: found.namespace, workers: workers,
		known: map[jobview.Subject]knownJob{}, pause: eventsAgain,
	}
	w.reasons = jobview.NewReasonsOfKnown(w.knows)
	for i := range listed {
		w.known[jobview.SubjectOf(&listed[i])] = knownJob{row: rowOf(&listed[i])}
	}
	events, err := w.watchEvents(ctx)
	if err != nil {
		c.say("warning: the reasons why Jobs wait can't be read: %v", access.Explain(err))
	}
	for i := range found.Items {
		if err := w.show(&found.Items[i], false); err != nil {
			return err
		}
	}
	options := []client.ListOption{client.InNamespace(found.namespace)}
	version := found.ResourceVersion
	if len(names) > 0 {
		version = found.Items[0].ResourceVersion
		options = append(options, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, jobName(names[0]))})
	} else if selector, err := selectors.Parse(f.selector); err == nil { // it was checked
		options = append(options, client.MatchingLabelsSelector{Selector: selector})
	}
	jobs, err := watchFrom(ctx, hub, &batchv1.JobList{}, version, options...)
	if err != nil {
		return access.Explain(err)
	}
	return w.follow(ctx, jobs, events)
}

// watchEvents reads the events of Jobs, and watches for others. Without them, it's a channel on
// which nothing comes.
func (w *jobWatch) watchEvents(ctx context.Context) (<-chan watch.Event, error) {
	version, err := access.EachEvent(ctx, w.hub, w.namespace, "", func(e *corev1.Event) { w.reasons.Note(e) })
	if err != nil {
		return nil, err
	}
	return watchFrom(ctx, w.hub, &corev1.EventList{}, version, client.InNamespace(w.namespace), access.EventsAbout(""))
}

// watchFrom watches from a resource version on, also if the connection breaks.
func watchFrom(ctx context.Context, hub client.WithWatch, list client.ObjectList, version string, options ...client.ListOption) (<-chan watch.Event, error) {
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, version, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return hub.Watch(ctx, list, append(options, &client.ListOptions{Raw: &raw})...)
		},
	})
	if err != nil {
		return nil, err
	}
	return watcher.ResultChan(), nil
}

// eventsAgain is after what time a watch of events that has ended begins anew, doubled each time
// until one comes: API servers send such a watch no bookmarks, and forget where it was.
var eventsAgain = wait.Backoff{Duration: time.Second, Factor: 2, Steps: 8, Cap: time.Minute}

// follow prints what comes, until the context ends. Without events, the rows lack why, and go on.
func (w *jobWatch) follow(ctx context.Context, jobs, events <-chan watch.Event) error {
	var again <-chan time.Time
	pause := eventsAgain
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-jobs:
			if !open && ctx.Err() == nil {
				return fmt.Errorf("the hub ended the watch of Jobs")
			}
			err = w.takeJob(e)
		case e, open := <-events:
			if !open {
				events, again = nil, time.After(pause.Step())
				continue
			}
			if e.Type != watch.Error {
				pause = eventsAgain
			}
			err = w.takeEvent(ctx, e)
		case <-w.later:
			w.later = nil
			err = w.showAll(ctx)
		case <-again:
			if events, err = w.watchEvents(ctx); err != nil {
				again = time.After(pause.Step())
			}
			err = w.showAll(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return access.Explain(err)
		}
	}
}

// showAll shows the Jobs that users see differently by now, in the order in which the hub lists
// them.
func (w *jobWatch) showAll(ctx context.Context) error {
	all := slices.SortedFunc(maps.Values(w.known), func(a, b knownJob) int {
		return strings.Compare(client.ObjectKeyFromObject(a.row).String(), client.ObjectKeyFromObject(b.row).String())
	})
	for _, known := range all {
		if err := w.showAgain(ctx, known); err != nil {
			return err
		}
	}
	return nil
}

// showAgain prints a known Job if users would see it differently by now. Where more is printed than
// a row, the hub is asked for that.
func (w *jobWatch) showAgain(ctx context.Context, known knownJob) error {
	if !w.seesReason(known) || !w.differs(known.row, false) {
		return nil
	}
	if w.out.asTable() {
		return w.print(known.row)
	}
	job := &batchv1.Job{}
	err := w.hub.Get(ctx, client.ObjectKeyFromObject(known.row), job)
	if client.IgnoreNotFound(err) != nil {
		if w.known[jobview.SubjectOf(known.row)] = known; ctx.Err() != nil {
			return nil
		}
		w.cli.say("warning: the Job %s can't be read: %v", known.row.Name, access.Explain(err))
		w.later = time.After(w.pause.Step())
		return nil
	}
	w.pause = eventsAgain
	if err != nil || job.UID != known.row.UID {
		return nil // the event of its deletion comes
	}
	return w.print(job)
}

// seesReason reports whether users may see a Job's last event: in a row, or as the Job is selected
// now, or isn't any more.
func (w *jobWatch) seesReason(known knownJob) bool {
	return w.out.asTable() || w.isSelected(known.row) != (known.printed != nil)
}

func (w *jobWatch) takeJob(e watch.Event) error {
	switch object := e.Object.(type) {
	case *batchv1.Job:
		return w.show(object, e.Type == watch.Deleted)
	case *metav1.Status:
		return apierrors.FromObject(object)
	default:
		return nil
	}
}

// readsAgain is after what time Jobs are read because of events, however many come.
const readsAgain = time.Second

func (w *jobWatch) takeEvent(ctx context.Context, e watch.Event) error {
	event, is := e.Object.(*corev1.Event)
	if !is || e.Type == watch.Deleted || !w.reasons.Note(event) {
		return nil
	}
	of, _, _ := jobview.Read(event)
	known, is := w.known[of]
	switch {
	case !is || !w.seesReason(known):
		return nil
	case w.out.asTable():
		return w.showAgain(ctx, known)
	case w.later == nil:
		w.later = time.After(readsAgain)
	}
	return nil
}

func (w *jobWatch) knows(of jobview.Subject) bool {
	_, is := w.known[of]
	return is
}

// show prints a Job that is selected, or was, if users would see it differently.
func (w *jobWatch) show(job *batchv1.Job, deleted bool) error {
	if !mirror.Managed(job) || !w.differs(job, deleted) {
		return nil
	}
	return w.print(job)
}

func (w *jobWatch) differs(job *batchv1.Job, deleted bool) bool {
	of, row := jobview.SubjectOf(job), rowOf(job)
	before := w.known[of].printed
	selected := w.isSelected(row)
	seen := jobview.Of(row, w.around(row)).Status
	if deleted {
		delete(w.known, of)
		delete(w.reasons.Reasons, of)
	} else {
		w.known[of] = knownJob{row, before}
	}
	if !selected && before == nil || !deleted && before != nil && equality.Semantic.DeepEqual(*before, seen) {
		return false
	}
	if !deleted {
		w.known[of] = knownJob{row, &seen}
		if !selected { // it's shown once more, as kubectl shows what leaves a selection
			w.known[of] = knownJob{row, nil}
		}
	}
	return true
}

func (w *jobWatch) isSelected(row *batchv1.Job) bool {
	return w.flags.isOnWorker(row) && w.flags.isInState(row, w.around(row))
}

func (w *jobWatch) around(job *batchv1.Job) jobview.Around {
	return jobview.AroundBy(w.reasons.Reasons, w.workers)(job)
}

func (w *jobWatch) print(job *batchv1.Job) error {
	if !w.out.asTable() {
		return w.out.print(w.cli, job)
	}
	columns := show.JobColumns{Namespace: w.namespace == "", Wide: w.out.format() == wide}
	return w.table.Write(show.Jobs([]batchv1.Job{*job}, w.around, w.cli.now(), columns))
}
