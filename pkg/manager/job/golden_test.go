package job

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var update = flag.Bool("update", false, "write the golden logs anew")

// story is a Job's life.
type story struct {
	name string
	play func(*world)
}

// stories are the main ways of a Job, each to its end.
var stories = []story{
	{"complete", func(w *world) {
		w.submits(aJob("train"))
		w.run()
		w.step(10 * time.Second)
		w.worker("a").completes(2)
		w.step(10 * time.Second)
		w.worker("a").completes(2)
		w.step(time.Minute)
	}},
	{"lost", func(w *world) {
		w.submits(aJob("train"))
		w.step(10 * time.Second)
		w.worker("a").completes(1)
		w.step(10 * time.Second)
		w.worker("a").isLost()
		w.worker("a").completes(2)
		w.worker("b").completes(1)
		w.step(time.Minute)
		w.worker("a").isBack()
		w.step(time.Minute)
		w.worker("b").completes(2)
		w.step(time.Minute)
	}},
	{"divided", func(w *world) {
		isDivided(w)
		w.worker("a").finishes(3)
		w.step(10 * time.Second)
		w.worker("b").finishes(4)
		w.worker("a").finishes(8)
		w.step(10 * time.Second)
		w.finishAll()
		w.step(time.Minute)
	}},
	{"divided-drained", func(w *world) {
		w.isEmbedded("a")
		isDivided(w)
		w.worker("b").finishes(1)
		w.step(10 * time.Second)
		w.worker("b").drains(true)
		w.step(10 * time.Second)
		w.finishAll()
		w.step(time.Minute)
	}},
	{"divided-lost", func(w *world) {
		w.isEmbedded("a", "b")
		w.worker("b").fenced = true
		isDivided(w)
		w.worker("b").finishes(1)
		w.step(10 * time.Second)
		w.worker("b").isLost()
		w.worker("a").finishes(8)
		w.step(time.Minute)
		w.worker("b").isBack()
		w.step(time.Minute)
		w.finishAll()
		w.step(time.Minute)
	}},
	{"deleted", func(w *world) {
		w.submits(aJob("train"))
		w.step(10 * time.Second)
		w.deletes(metav1.DeletePropagationBackground)
		w.step(time.Minute)
	}},
	{"suspended", func(w *world) {
		w.submits(aJob("train", suspended(true)))
		w.step(10 * time.Second)
		w.resumes()
		w.step(10 * time.Second)
		w.worker("a").completes(1)
		w.step(10 * time.Second)
		w.suspends()
		w.step(time.Minute)
		w.resumes()
		w.step(10 * time.Second)
		w.worker("a").completes(3)
		w.step(time.Minute)
	}},
	{"drained", func(w *world) {
		w.submits(aJob("train"))
		w.step(10 * time.Second)
		w.worker("a").completes(1)
		w.step(10 * time.Second)
		w.worker("a").drains(true)
		w.step(time.Minute)
		w.worker("b").completes(3)
		w.step(time.Minute)
	}},
}

func TestStories(t *testing.T) {
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			s.play(w)
			got, file := strings.Join(w.log, "\n")+"\n", filepath.Join("testdata", s.name+".log")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the log differs (-want +got); if that is meant, run go test with -update:\n%s", diff)
			}
		})
	}
}
