package show

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/jobferry/jobferry/pkg/jobview"
)

// Hub is the source of the hub's events in a timeline.
const Hub = "hub"

// Entry is one event in a timeline.
type Entry struct {
	// From is the cluster: Hub, or a worker's name.
	From  string
	Event corev1.Event
}

// Entries makes entries of the events of one cluster.
func Entries(from string, events []corev1.Event) []Entry {
	entries := make([]Entry, 0, len(events))
	for _, e := range events {
		entries = append(entries, Entry{from, e})
	}
	return entries
}

// InOrder returns the events of hub and worker, oldest first. Many events have whole seconds.
// Within one second the hub's come first, as most of the worker's follow from them. Events that are
// closer than the difference of the two clusters' clocks may be in the wrong order.
func InOrder(entries []Entry) []Entry {
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b Entry) int {
		at, bt := jobview.Time(&a.Event), jobview.Time(&b.Event)
		return cmp.Or(at.Truncate(time.Second).Compare(bt.Truncate(time.Second)), cmp.Compare(rank(a), rank(b)), at.Compare(bt))
	})
	return sorted
}

// Timeline is the table of events of hub and worker, in order.
func Timeline(entries []Entry, now time.Time) Table {
	t := Table{Header: []string{"AGE", "FROM", "OBJECT", "TYPE", "REASON", "MESSAGE"}}
	for _, entry := range InOrder(entries) {
		e := &entry.Event
		tone := tonePlain
		if e.Type == corev1.EventTypeWarning {
			tone = toneWarn
		}
		kind := strings.ToLower(brief(e.InvolvedObject.Kind))
		t.Rows = append(t.Rows, row(eventAge(e, now), entry.From, kind+"/"+e.InvolvedObject.Name,
			Cell{brief(e.Type), tone}, brief(e.Reason), e.Message))
	}
	return t
}

func rank(e Entry) int {
	if e.From == Hub {
		return 0
	}
	return 1
}

func eventAge(e *corev1.Event, now time.Time) string {
	text := duration.HumanDuration(max(now.Sub(jobview.Time(e)), 0))
	if times := Times(e); times > 1 {
		text += " (x" + strconv.Itoa(times) + ")"
	}
	return text
}

// Times is how often an event happened.
func Times(e *corev1.Event) int {
	if e.Series != nil {
		return int(e.Series.Count)
	}
	return int(e.Count)
}
