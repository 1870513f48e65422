package shards

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/mirror/intervals"
)

func aJob(completions, parallelism int32, indexed bool, completed string) *batchv1.Job {
	job := &batchv1.Job{Spec: batchv1.JobSpec{Completions: &completions, Parallelism: &parallelism}}
	job.Annotations = map[string]string{v1alpha1.AnnotationMaxClusters: v1alpha1.MaxClustersAll}
	if indexed {
		job.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion)
		job.Status.CompletedIndexes = completed
	}
	return job
}

func withLimit(job *batchv1.Job, limit string) *batchv1.Job {
	job.Annotations[v1alpha1.AnnotationMaxClusters] = limit
	return job
}

func aRoom(worker string, pods int64) Room {
	return Room{Worker: worker, Pods: pods, Open: true, Idle: true}
}

func elastic(worker string, pods int64, held string) Room {
	return Room{
		Worker: worker, Pods: pods, Open: true, Idle: held == "", Elastic: true, Known: true,
		Held: intervals.ParseLenient(held, intervals.NoLimit),
	}
}

func running(r Room) Room    { r.Idle = false; return r }
func closedRoom(r Room) Room { r.Open = false; return r }

// aShard reads "east 0-4 (2)", "east 7 of 9 (2)", and, after that, what is returning or "stopping".
func aShard(text string, indexed bool) Shard {
	head, rest, _ := strings.Cut(text, " (")
	number, state, _ := strings.Cut(rest, ")")
	worker, amount, _ := strings.Cut(head, " ") // no amount: nothing
	s := Shard{Worker: worker}
	_, _ = fmt.Sscan(number, &s.Parallelism)
	if !indexed {
		_, _ = fmt.Sscanf(amount, "%d of %d", &s.Succeeded, &s.Number)
	} else {
		s.Indexes = intervals.ParseLenient(amount, intervals.NoLimit)
	}
	if s.Stopping = state == " stopping"; !s.Stopping {
		s.Returning = strings.TrimPrefix(state, " returning ")
	}
	return s
}

func show(p Placement, indexed bool) string {
	var all []string
	for _, s := range p.Shards {
		text := fmt.Sprintf("%s %s (%d)", s.Worker, s.Indexes, s.Parallelism)
		if !indexed {
			text = fmt.Sprintf("%s %d of %d (%d)", s.Worker, s.Succeeded, s.Number, s.Parallelism)
		}
		if s.Returning != "" {
			text += " returning " + s.Returning
		}
		if s.Stopping {
			text += " stopping"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func TestDivide(t *testing.T) {
	const indexed, plain = true, false
	for _, row := range []struct {
		name  string
		job   *batchv1.Job
		now   string
		rooms []Room
		limit int
		want  string
	}{
		{"parts by room, indexes by parts, the best worker first",
			aJob(1000, 300, indexed, ""), "", []Room{elastic("west", 200, ""), elastic("east", 500, "")}, NoLimit,
			"east 667-999 (100); west 0-666 (200)"},
		{"no more workers than needed",
			aJob(1000, 300, indexed, ""), "", []Room{elastic("west", 300, ""), elastic("east", 500, "")}, NoLimit,
			"west 0-999 (300)"},
		{"no more workers than the user allows",
			aJob(100, 30, indexed, ""), "", []Room{elastic("a", 10, ""), elastic("b", 10, ""), elastic("c", 10, "")}, 2,
			"a 0-32 (10); b 33-65 (10)"},
		{"what has no room waits",
			aJob(10, 10, indexed, ""), "", []Room{elastic("a", 4, ""), aRoom("b", 2)}, NoLimit,
			"a 0-3 (4); b 4,5 (2)"},
		{"a Job that may run on one worker has nothing to wait for",
			aJob(10, 10, indexed, ""), "", []Room{aRoom("a", 4), aRoom("b", 2)}, 1,
			"a 0-9 (4)"},
		{"a worker that is full or closed gets nothing",
			aJob(10, 10, indexed, ""), "", []Room{aRoom("a", 0), closedRoom(aRoom("b", 5)), running(aRoom("c", 5))}, NoLimit,
			""},
		{"a fixed shard gets a portion",
			aJob(1000, 20, plain, ""), "", []Room{aRoom("a", 10), aRoom("b", 10)}, NoLimit,
			"a 0 of 300 (10); b 0 of 300 (10)"},
		{"a fixed shard grows when it has ended",
			aJob(100, 20, plain, ""), "a 30 of 30 (10); b 20 of 40 (10)", []Room{aRoom("a", 10), running(aRoom("b", 10))}, NoLimit,
			"a 30 of 60 (10); b 20 of 40 (10)"},
		{"a fixed shard doesn't grow before",
			aJob(100, 20, plain, ""), "a 29 of 30 (10); b 20 of 40 (10)", []Room{running(aRoom("a", 10)), running(aRoom("b", 10))}, NoLimit,
			"a 29 of 30 (10); b 20 of 40 (10)"},
		{"an elastic shard that runs dry gets what another hasn't started",
			aJob(100, 20, indexed, "0-49"), "a 0-49 (10); b 50-99 (10)", []Room{elastic("a", 10, "0-49"), elastic("b", 10, "50-99")}, NoLimit,
			"a 0-49 (10); b 50-99 (10) returning 75-99"},
		{"not while the worker can start it",
			aJob(100, 20, indexed, "0-49"), "a 0-49 (10); b 50-99 (10) returning 75-99", []Room{elastic("a", 10, "0-49"), elastic("b", 10, "50-99")}, NoLimit,
			"a 0-49 (10); b 50-99 (10) returning 75-99"},
		{"then it leaves, but for what was started",
			aJob(100, 20, indexed, "0-49"), "a 0-49 (10); b 50-99 (10) returning 75-99", []Room{elastic("a", 10, "0-49"), elastic("b", 10, "50-74,80")}, NoLimit,
			"a 75-79,81-99 (10); b 50-74,80 (10) returning 80"},
		{"a shard that is stopping is left alone, and counts",
			aJob(100, 20, indexed, "0-49"), "a 0-49 (5); b 50-99 (15) stopping", []Room{elastic("a", 20, "0-49"), elastic("b", 10, "50-99")}, NoLimit,
			"a 0-49 (5); b 50-99 (15) stopping"},
		{"a part that isn't needed goes to another",
			aJob(100, 20, indexed, "0-49"), "a 0-49 (10); b 50-99 (10)", []Room{closedRoom(elastic("a", 10, "0-49")), elastic("b", 20, "50-99")}, NoLimit,
			"a 0-49 (0); b 50-99 (20)"},
		{"parts fall with the Job's parallelism",
			aJob(100, 5, indexed, ""), "a 0-49 (10); b 50-99 (10) stopping", []Room{elastic("a", 10, "0-49"), elastic("b", 10, "50-99")}, NoLimit,
			"a 0-49 (2); b 50-99 (3) stopping"},
		{"an empty worker makes place for another",
			aJob(100, 20, indexed, "0-49"), "a 0-49 (10)", []Room{closedRoom(elastic("a", 10, "0-49")), elastic("b", 20, "")}, 1,
			"b 50-99 (20)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var now Placement
			for text := range strings.SplitSeq(row.now, "; ") {
				if text != "" {
					now.Shards = append(now.Shards, aShard(text, Indexed(row.job)))
				}
			}
			if got := show(Divide(row.job, now, row.rooms, row.limit), Indexed(row.job)); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// Whatever the rooms, limits and losses, the Job comes to its end.
func TestDivideMakesProgress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.rooms[0].Pods = max(w.rooms[0].Pods, 1)
		for i := range w.rooms {
			w.rooms[i].Open, w.rooms[i].Idle, w.rooms[i].Known, w.rooms[i].Held = true, true, true, nil
		}
		lostAt := rapid.IntRange(0, 10).Draw(t, "lost at")
		for round := range 1000 {
			if round == lostAt {
				lost := w.worker()
				w.placement = w.placement.Without(lost)
				for i := range w.rooms {
					if w.rooms[i].Worker == lost { // it's back, and its mirror is gone
						w.rooms[i].Idle, w.rooms[i].Held = true, nil
					}
				}
			}
			w.divide()
			left := w.placement.Unassigned(w.job).Len()
			for i := range w.placement.Shards {
				left += Remaining(w.job, w.placement.Shards[i]).Len()
				w.runs(&w.placement.Shards[i])
			}
			if left == 0 {
				return
			}
		}
		t.Fatalf("no end: %v, rooms %+v", w.placement.Kept(), w.rooms)
	})
}

// runs completes what a shard's worker can run at once.
func (w *world) runs(s *Shard) {
	for i := range w.rooms {
		room := &w.rooms[i]
		if room.Worker != s.Worker {
			continue
		}
		asked := Remaining(w.job, *s)
		asked.Indexes = asked.Indexes.Minus(intervals.ParseLenient(s.Returning, 100))
		n := min(int(room.Pods), int(s.Parallelism), asked.Len())
		low, _ := asked.Indexes.Split(n)
		room.Held = asked.Indexes
		w.completed = w.completed.Union(low)
		if Indexed(w.job) {
			w.show()
		} else {
			s.Succeeded += int32(n)
		}
		room.Idle = n == asked.Len()
	}
}

func TestExplain(t *testing.T) {
	job := aJob(1000, 500, true, "")
	rooms := []Room{elastic("east", 200, ""), elastic("west", 100, ""), aRoom("south", 0), closedRoom(aRoom("north", 9))}
	for _, row := range []struct {
		name  string
		job   *batchv1.Job
		now   []string
		rooms []Room
		want  string
	}{
		{"what waits for room", job, []string{"east 0-399 (200)", "west 400-599 (100)"}, rooms,
			"Divided over 2 workers: east 0-399 (200 Pods at once); west 400-599 (100 Pods at once). 400 indexes wait for room: 200 more Pods could run at once. " +
				"No room: south. Takes no new Pods: north"},
		{"no room at all", job, nil, rooms[2:],
			"On no worker. 1000 indexes wait for room: 500 more Pods could run at once. No room: south. Takes no new Pods: north"},
		{"who isn't needed", aJob(1000, 200, true, ""), []string{"east 0-999 (200)"}, rooms[:2],
			"On 1 worker: east 0-999 (200 Pods at once). Not needed: west"},
		{"what is given back", aJob(1000, 300, true, "0-499"), []string{"east 0-499 (200)", "west 500-999 (100) returning 700-999"},
			[]Room{elastic("east", 200, "0-499"), elastic("west", 100, "500-999")},
			"Divided over 2 workers: east 0-499 (200 Pods at once); west 500-999 (100 Pods at once, asked to give back 300)"},
		{"one index", aJob(5, 4, true, ""), []string{"east 0-3 (4)"}, []Room{running(aRoom("east", 4))},
			"On 1 worker: east 0-3 (4 Pods at once). 1 index waits for the next shard that ends"},
		{"the limit", withLimit(aJob(9, 9, true, ""), "2"), []string{"east 0-3 (4)", "north (0)"},
			[]Room{elastic("east", 4, "0-3"), running(aRoom("north", 0)), aRoom("west", 9)},
			"Divided over 2 workers: east 0-3 (4 Pods at once); north nothing (0 Pods at once). " +
				"5 indexes wait for room: 5 more Pods could run at once. jobferry.dev/max-clusters allows no more workers"},
		{"the next portion", aJob(1000, 20, false, ""), []string{"a 0 of 300 (10)", "b 0 of 300 (10) stopping"}, []Room{running(aRoom("a", 10))},
			"Divided over 2 workers: a 300 (10 Pods at once); b 300 (stopping). 400 completions wait for the next shard that ends"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var now Placement
			for _, text := range row.now {
				now.Shards = append(now.Shards, aShard(text, Indexed(row.job)))
			}
			if got := Explain(row.job, now, row.rooms); got != row.want {
				t.Errorf("got  %s\nwant %s", got, row.want)
			}
		})
	}
}

// The explanation stays an event's note, whatever the names and sets.
func TestExplainIsShort(t *testing.T) {
	var placement Placement
	var rooms []Room
	for i := range 100 {
		worker := fmt.Sprintf("%s-%03d", strings.Repeat("x", 200), i)
		var odd []int
		for k := range 100 {
			odd = append(odd, i*1000+k*2)
		}
		placement.Shards = append(placement.Shards, Shard{Worker: worker, Amount: Amount{Indexes: intervals.Of(odd...)}})
		rooms = append(rooms, aRoom(worker+"y", 0))
	}
	if got := Explain(aJob(100_000, 500, true, ""), placement, rooms); len(got) > 1024 || !strings.HasPrefix(got, "Divided over 100 workers") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}
