package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/indexes"
)

// Span is what one run has measured of one Job over several workers.
type Span struct {
	// Indexes, Parallelism and RunFor, the time of each Pod, are those of the Job; Room is how many
	// Pods fit in each worker.
	Indexes, Workers, Parallelism, Room int
	RunFor, LostAfter                   time.Duration
	// Machine is what ran it all, see measure.Machine.
	Machine string
	// Whole is the Job in one cluster with the room of all; nil: not measured.
	Whole *Sweep `json:",omitempty"`
	// Spanned is the Job over the workers.
	Spanned Sweep
	// Small is how many indexes the Job had that SmallMemory, the manager's, was measured with.
	Small       int
	SmallMemory int64
	ManagerCPU  time.Duration
	// Requests of the manager about the Job.
	Requests []audit.Count
}

// Sweep is one run of the Job.
type Sweep struct {
	// Makespan is from before the create to the arrival of the condition Complete.
	Makespan time.Duration
	// Indexes are as counted from their Pods; Missed Pods were gone without an event.
	Indexes indexes.Counts
	Missed  int
	// Shown is how many the Job's status says have completed.
	Shown int
	// Divisions are the changes of the shards, Moved is how many indexes got into a shard of
	// another worker.
	Divisions, Moved int
	// Memory is the most that the manager held meanwhile.
	Memory int64
	// CPU is what the processes of all clusters used.
	CPU CPU
}

// Exact reports whether each index completed exactly once, by its Pods and by the Job's status.
func (s *Sweep) Exact() bool {
	return s.Indexes.Exact() && s.Missed == 0 && s.Shown == s.Indexes.Indexes
}

// Rate is the number of Pods per second.
func (s *Sweep) Rate() float64 { return float64(s.Indexes.Indexes) / s.Makespan.Seconds() }

// cores are those that were busy.
func (s *Sweep) cores() float64 { return s.CPU.All().Seconds() / s.Makespan.Seconds() }

// Per1000 is the number of requests and of events of the manager per 1,000 indexes.
func (s *Span) Per1000() (requests, events float64) {
	for _, c := range s.Requests {
		if c.IsEvent() {
			events += float64(c.Requests)
		} else {
			requests += float64(c.Requests)
		}
	}
	return requests * 1000 / float64(s.Indexes), events * 1000 / float64(s.Indexes)
}

// Goals of one Job over several workers.
const (
	spanRatio    = 1.15
	spanRequests = 60
	spanMemory   = 50 * megabyte
)

// MissedOf names the goals that a run misses. Those of time depend on the machine.
func MissedOf(s *Span) (missed []string) {
	miss := func(is bool, format string, arguments ...any) {
		if is {
			missed = append(missed, fmt.Sprintf(format, arguments...))
		}
	}
	for _, sweep := range []*Sweep{s.Whole, &s.Spanned} {
		if sweep != nil {
			c := sweep.Indexes
			miss(!sweep.Exact(), "not each index completed exactly once: %d by the status; never %s, again %s, in two workers at once %s; "+
				"%d Pods of other indexes; %d Pods gone without an event; %s",
				sweep.Shown, c.Never, c.Again, c.Together, c.Strange, sweep.Missed, strings.Join(c.Stories, ", "))
		}
	}
	requests, events := s.Per1000()
	miss(requests+events > spanRequests, "requests and events per 1,000 indexes: %.1f, at most %d", requests+events, spanRequests)
	more := float64(s.Spanned.Memory - s.SmallMemory)
	miss(s.Small > 0 && more > spanMemory, "memory beyond that with a Job of %d: %s, at most %s", s.Small, megabytes(more), megabytes(spanMemory))
	miss(s.ratio() > spanRatio, "makespan: %.2fx, at most %.2fx", s.ratio(), spanRatio)
	return missed
}

// ratio is how much longer the Job took over the workers; 0: it wasn't compared.
func (s *Span) ratio() float64 {
	if s.Whole == nil {
		return 0
	}
	return s.Spanned.Makespan.Seconds() / s.Whole.Makespan.Seconds()
}

// SpanMarkdown writes a run as Markdown.
func SpanMarkdown(out io.Writer, s *Span) error {
	p := &page{}
	p.line("### %d indexes, %d at once, %s each, over %d workers with room for %d Pods each, %s for everything\n",
		s.Indexes, s.Parallelism, s.RunFor, s.Workers, s.Room, s.Machine)
	p.table("", "over the workers", "one cluster with the room of all")
	whole := func(show func(*Sweep) string) string {
		if s.Whole == nil {
			return "-"
		}
		return show(s.Whole)
	}
	both := func(name string, show func(*Sweep) string) { p.row(name, show(&s.Spanned), whole(show)) }
	both("makespan", func(w *Sweep) string { return seconds(w.Makespan) })
	if s.Whole != nil {
		p.row("ratio (goal: at most 1.15)", fmt.Sprintf("%.3f", s.ratio()), "1")
	}
	both("Pods per second", func(w *Sweep) string { return decimals(1)(w.Rate()) })
	p.row("Pods per second at most, by parallelism and Pods' time", decimals(1)(float64(s.Parallelism)/s.RunFor.Seconds()), "the same")
	both("indexes that completed exactly once", func(w *Sweep) string { return fmt.Sprint(w.Indexes.Once) })
	both("completed in the lost worker too, before the hub could know", func(w *Sweep) string { return fmt.Sprint(w.Indexes.InLost) })
	both("indexes that never completed / completed again / ran in two workers at once", func(w *Sweep) string {
		c := w.Indexes
		return fmt.Sprintf("%d / %d / %d", c.Never.Len(), c.Again.Len(), c.Together.Len())
	})
	both("indexes by their number of Pods", func(w *Sweep) string { return runs(w.Indexes.Runs) })
	p.row("changes of the shards; indexes that changed their worker", fmt.Sprintf("%d; %d", s.Spanned.Divisions, s.Spanned.Moved), "")
	requests, events := s.Per1000()
	p.row("requests of the manager per 1,000 indexes (goal: at most 60 with events)", fmt.Sprintf("%.1f, and %.1f events", requests, events), "")
	p.row(fmt.Sprintf("memory of the manager, and with a Job of %d (goal: at most 50 MB apart)", s.Small),
		fmt.Sprintf("%s, %s", megabytes(float64(s.Spanned.Memory)), megabytes(float64(s.SmallMemory))), "")
	p.row("CPU of the manager", seconds(s.ManagerCPU), "")
	both("cores that the clusters kept busy", func(w *Sweep) string { return decimals(2)(w.cores()) })
	p.line("")
	p.table("requests of the manager", "number", "failed")
	for _, c := range s.Requests {
		p.row(strings.Join([]string{c.Cluster, c.Verb, c.Resource}, " "), fmt.Sprint(c.Requests), fmt.Sprint(c.Failed))
	}
	for _, missed := range MissedOf(s) {
		p.line("\nMissed: %s", missed)
	}
	_, err := io.WriteString(out, p.String())
	return err
}

func runs(by map[int]int) string {
	var all []string
	for _, n := range slices.Sorted(maps.Keys(by)) {
		all = append(all, fmt.Sprintf("%d with %d", by[n], n))
	}
	return strings.Join(all, ", ")
}
