package servingcert

import (
	"slices"
	"testing"
	"time"
)

var (
	start    = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	names    = []string{"webhook.jobferry-system.svc"}
	settings = Options{DNSNames: names, Lifetime: 90 * time.Hour, Settle: time.Hour}
)

// born makes a generation of 90 hours, some hours after the start.
func born(t *testing.T, hours int, names ...string) *generation {
	t.Helper()
	g, err := newGeneration(names, start.Add(time.Duration(hours)*time.Hour), settings.Lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestDecide(t *testing.T) {
	first, second := born(t, 0, names...), born(t, 60, names...)
	other := born(t, 10, "other")
	broad := born(t, 10, append([]string{"other"}, names...)...)
	both := bundle([]*generation{first, second})
	rows := map[string]struct {
		now         int // hours after the start
		generations []*generation
		trusted     [][]byte
		create      bool
		serve       *generation
		drop        []*generation
		again       int
	}{
		"nothing yet":                       {now: 0, create: true},
		"the first is served at once":       {now: 0, generations: []*generation{first}, serve: first, again: 1},
		"it lasts":                          {now: 59, generations: []*generation{first}, serve: first, again: 60},
		"its last third begins":             {now: 60, generations: []*generation{first}, create: true, serve: first, again: 90},
		"the next is trusted, not served":   {now: 60, generations: []*generation{first, second}, trusted: [][]byte{both}, serve: first, again: 61},
		"settled":                           {now: 61, generations: []*generation{first, second}, trusted: [][]byte{both}, serve: second, again: 90},
		"settled without any target":        {now: 61, generations: []*generation{first, second}, serve: second, again: 90},
		"settled, but a target lacks it":    {now: 70, generations: []*generation{first, second}, trusted: [][]byte{both, first.cert}, serve: first, again: 90},
		"the old one expires":               {now: 90, generations: []*generation{first, second}, trusted: [][]byte{both}, serve: second, drop: []*generation{first}, again: 120},
		"expired, whatever the targets say": {now: 90, generations: []*generation{first, second}, trusted: [][]byte{first.cert}, serve: second, drop: []*generation{first}, again: 120},
		"all expired":                       {now: 200, generations: []*generation{first}, create: true, drop: []*generation{first}},
		"for other names":                   {now: 10, generations: []*generation{other}, create: true, again: 11},
		"another replica's names":           {now: 12, generations: []*generation{first, other}, serve: first, again: 60},
		"for more names":                    {now: 12, generations: []*generation{broad}, serve: broad, again: 70},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			s := snapshot{now: start.Add(time.Duration(row.now) * time.Hour), generations: row.generations, trusted: row.trusted}
			p := decide(s, settings)
			if p.create != row.create || p.serve != row.serve {
				t.Errorf("create %t, serve %v; want %t, %v", p.create, entry(p.serve), row.create, entry(row.serve))
			}
			var drop []string
			for _, g := range row.drop {
				drop = append(drop, g.entry)
			}
			if !slices.Equal(p.drop, drop) {
				t.Errorf("drop %v, want %v", p.drop, drop)
			}
			var again time.Duration
			if row.again > 0 {
				again = time.Duration(row.again-row.now) * time.Hour
			}
			if p.again != again {
				t.Errorf("again in %s, want %s", p.again, again)
			}
		})
	}
}

func entry(g *generation) string {
	if g == nil {
		return "nothing"
	}
	return g.entry
}
