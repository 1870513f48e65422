package show

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Hub is whom the hub's events are from in a time line.
const Hub = "hub"

// Entry is one event in a time line.
type Entry struct {
	// From is the cluster: Hub, or a worker's name.
	From  string
	Event corev1.Event
}

// Entries are the events of one cluster.
func Entries(from string, events []corev1.Event) []Entry {
	entries := make([]Entry, 0, len(events))
	for _, e := range events {
		entries = append(entries, Entry{from, e})
	}
	return entries
}

// Timeline is the table of events of hub and worker, oldest first. Many events have whole seconds;
// within one the hub's go first, as most of the worker's follow from them. The clocks of two
// clusters differ: what is less than that apart may be the other way round.
func Timeline(entries []Entry, now time.Time) Table {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b Entry) int {
		at, bt := eventTime(&a.Event), eventTime(&b.Event)
		return cmp.Or(at.Truncate(time.Second).Compare(bt.Truncate(time.Second)), cmp.Compare(rank(a), rank(b)), at.Compare(bt))
	})
	t := Table{Header: []string{"AGE", "FROM", "OBJECT", "TYPE", "REASON", "MESSAGE"}}
	for _, entry := range entries {
		e := &entry.Event
		tone := Plain
		if e.Type == corev1.EventTypeWarning {
			tone = Warn
		}
		t.Rows = append(t.Rows, []Cell{
			Text(eventAge(e, now)), Text(entry.From), Text(strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name),
			{e.Type, tone}, Text(e.Reason), Text(oneLine(e.Message)),
		})
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
	text := duration.HumanDuration(max(now.Sub(eventTime(e)), 0))
	times := int(e.Count)
	if e.Series != nil {
		times = int(e.Series.Count)
	}
	if times > 1 {
		text += " (x" + strconv.Itoa(times) + ")"
	}
	return text
}
