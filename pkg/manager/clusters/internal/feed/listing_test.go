package feed

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
)

// TestAListThatNeverEnds has a worker answer each page of a list with further objects and the
// promise of more: the list fails, and little has been read of it until then.
func TestAListThatNeverEnds(t *testing.T) {
	held := func(i int) batchv1.Job { return *forged(i, 100) }
	notHeld := func(i int) batchv1.Job { j := held(i); j.Annotations = nil; return j }
	for name, row := range map[string]struct {
		job    func(i int) batchv1.Job
		reason string
		says   string
		pages  int
	}{
		"the same Jobs":            {func(i int) batchv1.Job { return held(i % 20) }, v1alpha1.ReasonAnswerTooLarge, `"tenant/j0" twice`, 2},
		"one Job twice in a page":  {func(i int) batchv1.Job { return held(i % 19) }, v1alpha1.ReasonAnswerTooLarge, `"tenant/j0" twice`, 1},
		"other Jobs":               {held, v1alpha1.ReasonTooManyMirrors, "more than 126 Jobs", 7},
		"Jobs that aren't held":    {notHeld, v1alpha1.ReasonAnswerTooLarge, "more than 200000 objects", maxNotHeld/20 + 1},
		"the same that isn't held": {func(int) batchv1.Job { return notHeld(0) }, v1alpha1.ReasonAnswerTooLarge, "more than 200000 objects", maxNotHeld/20 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			pages := 0
			_, err := listAll(t.Context(), metav1.ListOptions{}, mirrorIntake(func() int { return 100 }), func(context.Context, metav1.ListOptions) (runtime.Object, error) {
				page := &batchv1.JobList{ListMeta: metav1.ListMeta{Continue: "more"}}
				for i := range 20 {
					page.Items = append(page.Items, row.job(20*pages+i))
				}
				pages++
				return page, nil
			})
			var broken *link.BoundError
			if !errors.As(err, &broken) || broken.Reason != row.reason || !strings.Contains(broken.Message, row.says) || pages != row.pages {
				t.Errorf("after %d pages: %v", pages, err)
			}
		})
	}
}

// What is remembered of a list, and sent again, is as short as API servers make it.
func TestLongVersionsOfLists(t *testing.T) {
	long := strings.Repeat("1", 1<<20)
	for name, meta := range map[string]metav1.ListMeta{"token": {Continue: long}, "version": {ResourceVersion: long}} {
		_, err := listAll(t.Context(), metav1.ListOptions{}, mirrorIntake(func() int { return 100 }), func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &batchv1.JobList{ListMeta: meta}, nil
		})
		if broken := (*link.BoundError)(nil); !errors.As(err, &broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, event := range []watch.EventType{watch.Added, watch.Deleted, watch.Bookmark} {
		job := forged(0, 10)
		job.ResourceVersion = long
		_, passed, err := mirrorIntake(func() int { return 100 }).pass(watch.Event{Type: event, Object: job})
		if broken := (*link.BoundError)(nil); passed || !errors.As(err, &broken) {
			t.Errorf("%s passes: %t, %v", event, passed, err)
		}
	}
}

// TestAPageThatIsAskedForAgain: an honest list has no object twice because a page was too large.
func TestAPageThatIsAskedForAgain(t *testing.T) {
	into := mirrorIntake(func() int { return 100 })
	for range 2 { // also when it's listed anew
		_, err := listAll(t.Context(), metav1.ListOptions{}, into, func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			switch {
			case o.Continue == "":
				return &batchv1.JobList{ListMeta: metav1.ListMeta{Continue: "1"}, Items: []batchv1.Job{*forged(0, 10)}}, nil
			case o.Limit == 500:
				return nil, &link.BoundError{Reason: v1alpha1.ReasonAnswerTooLarge}
			}
			return &batchv1.JobList{Items: []batchv1.Job{*forged(1, 10), *forged(2, 10)}}, nil
		})
		if err != nil || into.held() != 3 {
			t.Errorf("%d are held: %v", into.held(), err)
		}
	}
}

// TestHowLongAListMayTake: only the time with an open gate counts, what comes extends it up to a
// limit, and a loss between doesn't.
func TestHowLongAListMayTake(t *testing.T) {
	most := listTimeOf(link.Options{RequestTimeout: 15 * time.Second})
	if most != (listTime{75 * time.Second, 10 * time.Minute}) {
		t.Errorf("the limits are %v", most)
	}
	type look struct {
		open bool
		read bool
	}
	var (
		silent, reads = look{open: true}, look{open: true, read: true}
		shut          = look{}
	)
	for name, row := range map[string]struct {
		looks []look // one in ten seconds, again and again
		over  int    // after so many; 0: never
	}{
		"silent":          {[]look{silent}, 9},
		"shut":            {[]look{shut}, 0},
		"something comes": {[]look{silent, silent, reads}, 61},
		"comes and goes":  {[]look{silent, silent, silent, shut}, 15},
	} {
		var (
			l    listing
			read int64
			now  = time.Unix(0, 0)
			over int
		)
		for i := 0; i < 500 && over == 0; i++ {
			now = now.Add(10 * time.Second)
			at := row.looks[i%len(row.looks)]
			if at.read {
				read++
			}
			if l.look(now, at.open, true, read, most) {
				over = i + 1
			}
		}
		if over != row.over || (l.overdue != nil) != (over > 0) {
			t.Errorf("%s: over after %d looks, want %d", name, over, row.over)
		}
		if l.look(now, true, true, read, most); (l.overdue != nil) != (over > 0) {
			t.Errorf("%s: %v is forgotten", name, l.overdue)
		}
		if l.look(now, true, false, read, most); l.overdue != nil {
			t.Errorf("%s: what is listed is overdue", name)
		}
	}
}
