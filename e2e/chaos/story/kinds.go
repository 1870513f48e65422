package story

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// kind is a kind of story, and how often it's told.
type kind struct {
	name   string
	weight int
	write  func(*draft) Story
}

// kinds are told in a run. Their names start the Jobs' names.
var kinds = []kind{
	{"single", 14, single},
	{"parallel", 8, parallel},
	{"indexed", 10, indexed},
	{"long", 12, long},
	{"retried", 6, retried},
	{"hopeless", 4, hopeless},
	{"fail-job", 4, failJob},
	{"disrupted", 4, disrupted},
	{"per-index", 5, perIndex},
	{"fail-index", 4, failIndex},
	{"max-failed", 3, maxFailed},
	{"success-policy", 5, successPolicy},
	{"queue", 5, queue},
	{"deadline", 3, deadline},
	{"halted", 6, halted},
	{"created-suspended", 4, createdSuspended},
	{"scaled", 5, scaled},
	{"elastic", 5, elastic},
	{"reselected", 4, reselected},
	{"deleted", 6, deleted},
	{"replaced", 4, replaced},
	{"expiring", 4, expiring},
	{"waits", 4, waits},
	{"restarts", 4, restarts},
	{"divided", 3, divided},
	{"divided-counted", 2, dividedCounted},
	{"divided-per-index", 2, dividedPerIndex},
	{"divided-max-failed", 2, dividedMaxFailed},
	{"divided-success-policy", 2, dividedSuccessPolicy},
	{"divided-halted", 2, dividedHalted},
	{"divided-scaled", 2, dividedScaled},
	{"divided-reselected", 2, dividedReselected},
}

// Kinds are the names of all kinds.
func Kinds() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

func choose(only []string) ([]kind, error) {
	if len(only) == 0 {
		return kinds, nil
	}
	var chosen []kind
	for _, name := range only {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no kind of Job %q; there are %s", name, strings.Join(Kinds(), ", "))
		}
		chosen = append(chosen, kinds[i])
	}
	return chosen, nil
}

func pick(random *rand.Rand, from []kind) kind {
	total := 0
	for _, k := range from {
		total += k.weight
	}
	n := random.IntN(total)
	for _, k := range from {
		if n -= k.weight; n < 0 {
			return k
		}
	}
	return from[0] // not reached
}
