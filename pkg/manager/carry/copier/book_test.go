package copier

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/pkg/manager/carry"
)

var (
	train = types.NamespacedName{Namespace: "team", Name: "train"}
	test  = types.NamespacedName{Namespace: "team", Name: "test"}
)

func sourceOf(name string) Source {
	return Source{carry.Secret, types.NamespacedName{Namespace: "team", Name: name}}
}

// step is something that happens to a book; it returns the Jobs that are woken.
type step func(*Book) []types.NamespacedName

func follow(job types.NamespacedName) step {
	return func(b *Book) []types.NamespacedName { b.Follow(job, sourceOf("x")); return nil }
}

func enter(job types.NamespacedName, version string) step {
	return func(b *Book) []types.NamespacedName {
		b.Enter(job, Record{Mirror: "mirror", Seen: map[Source]string{sourceOf("x"): version}, At: time.Now()})
		return nil
	}
}

func changed(version string) step {
	return func(b *Book) []types.NamespacedName { return b.Changed(sourceOf("x"), version) }
}

func forget(job types.NamespacedName) step {
	return func(b *Book) []types.NamespacedName { b.Forget(job); return nil }
}

func TestBook(t *testing.T) {
	rows := map[string]struct {
		steps   []step
		woken   []types.NamespacedName // by the last step
		current bool                   // train's record, after it
	}{
		"nothing is known":                   {nil, nil, false},
		"carried":                            {[]step{follow(train), enter(train, "7")}, nil, true},
		"the watch lags behind":              {[]step{follow(train), enter(train, "7"), changed("5")}, nil, true},
		"the watch shows what was carried":   {[]step{follow(train), enter(train, "7"), changed("7")}, nil, true},
		"the source changes":                 {[]step{follow(train), enter(train, "7"), changed("10")}, []types.NamespacedName{train}, false},
		"it changes while it's carried":      {[]step{follow(train), changed("10"), enter(train, "7")}, nil, false},
		"a change that nobody waits for":     {[]step{changed("10"), follow(train), enter(train, "7")}, nil, true},
		"it's missing":                       {[]step{follow(train), enter(train, "")}, nil, true},
		"it appears":                         {[]step{follow(train), enter(train, ""), changed("5")}, []types.NamespacedName{train}, false},
		"it was gone, the watch didn't know": {[]step{follow(train), changed("5"), enter(train, "5"), changed("5")}, nil, true},
		"one of two had it before":           {[]step{follow(train), enter(train, "10"), follow(test), enter(test, "7"), changed("10")}, []types.NamespacedName{test}, true},
		"not carried yet":                    {[]step{follow(test), changed("10")}, []types.NamespacedName{test}, false},
		"forgotten":                          {[]step{follow(train), enter(train, "7"), forget(train), changed("10")}, nil, false},
		"a neighbour is forgotten":           {[]step{follow(train), enter(train, "7"), follow(test), forget(test), changed("10")}, []types.NamespacedName{train}, false},
		"no version at all":                  {[]step{follow(train), enter(train, "7"), changed("x")}, nil, true},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			book := NewBook()
			var woken []types.NamespacedName
			for _, step := range row.steps {
				woken = step(book)
			}
			if !slices.Equal(woken, row.woken) {
				t.Errorf("woke %v, want %v", woken, row.woken)
			}
			if _, current := book.Of(train, "mirror"); current != row.current {
				t.Errorf("current: %t", current)
			}
			if _, current := book.Of(train, "next mirror"); current {
				t.Error("current for a mirror that it wasn't carried for")
			}
		})
	}
}

// Nothing is kept of Jobs that are gone.
func TestBookForgets(t *testing.T) {
	book := NewBook()
	for _, job := range []types.NamespacedName{train, test} {
		book.Follow(job, sourceOf("x"))
		book.Follow(job, sourceOf(job.Name))
		book.Changed(sourceOf("x"), "7")
		book.Enter(job, Record{})
	}
	book.Forget(train)
	if book.Follow(test, sourceOf("x")) != "7" {
		t.Error("what another Job needs is forgotten")
	}
	book.Forget(test)
	if n := len(book.records) + len(book.follows) + len(book.followers) + len(book.newest); n != 0 {
		t.Errorf("%d entries are left: %+v", n, book)
	}
}
