package servingcert

import (
	"bytes"
	"slices"
	"time"

	"github.com/jobferry/jobferry/pkg/util/wake"
)

// snapshot is what a decision is made from.
type snapshot struct {
	now         time.Time
	generations []*generation // of the Secret, oldest first
	unreadable  []string      // entries of the Secret
	trusted     [][]byte      // the bundles in the targets that exist
}

// plan is the output of decide.
type plan struct {
	// create: a new generation is due.
	create bool
	// drop are entries to remove from the Secret.
	drop []string
	// serve is what GetCertificate returns; nil: nothing can be served.
	serve *generation
	// bundle is the caBundle of the targets.
	bundle []byte
	// again is the wake-up to decide anew without any event.
	again time.Duration
}

// decide is pure.
func decide(s snapshot, o Options) plan {
	live, expired := split(s.generations, s.now)
	mine := slices.DeleteFunc(slices.Clone(live), func(g *generation) bool { return !g.covers(o.DNSNames) })
	p := plan{
		create: len(mine) == 0 || !s.now.Before(mine[len(mine)-1].renewal()),
		drop:   s.unreadable,
		serve:  choose(mine, s, o.Settle),
		bundle: bundle(live),
	}
	for _, g := range expired {
		p.drop = append(p.drop, g.entry)
	}
	for _, g := range live {
		for _, at := range []time.Time{g.created.Add(o.Settle), g.renewal(), g.expires()} {
			p.again = wake.Soonest(p.again, wake.Until(at, s.now))
		}
	}
	return p
}

func split(all []*generation, now time.Time) (live, expired []*generation) {
	for _, g := range all {
		if now.Before(g.expires()) {
			live = append(live, g)
		} else {
			expired = append(expired, g)
		}
	}
	return live, expired
}

// choose returns the generation to serve: the newest that the API servers trust by now, else the
// oldest.
func choose(mine []*generation, s snapshot, settle time.Duration) *generation {
	for _, g := range slices.Backward(mine) {
		if !s.now.Before(g.created.Add(settle)) && trustedBy(s.trusted, g) {
			return g
		}
	}
	if len(mine) > 0 {
		return mine[0]
	}
	return nil
}

func trustedBy(bundles [][]byte, g *generation) bool {
	return !slices.ContainsFunc(bundles, func(b []byte) bool { return !bytes.Contains(b, g.cert) })
}
