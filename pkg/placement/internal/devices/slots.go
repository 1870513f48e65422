package devices

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// maxCounted bounds how many Pods are counted on one node: any number may share a device.
const maxCounted = 256

// Slots counts, up to most, how many Pods one after the other find their devices on a node, and
// says why the next one doesn't. It holds while the trial isn't coupled.
func (t *trial) Slots(node *capacity.Node, most int64) (pods int64, refusal string) {
	if refusal := t.unavailable(node); refusal != "" {
		return 0, refusal
	}
	w := t.wishOn(node)
	if w == nil {
		return most, ""
	}
	a := t.answerOn(node, w, min(most, maxCounted))
	if a.broken && a.pods == 0 {
		t.broken = a.refusal
	}
	if a.more {
		return most, ""
	}
	return min(a.pods, most), a.refusal
}

// answerOn a node is known if one that is alike was asked for as many Pods.
func (t *trial) answerOn(node *capacity.Node, w *wish, most int64) answer {
	number := t.alike[node.Object.Name]
	a, known := w.answers[number]
	if !known {
		a, known = t.memo.answer(question{w.key, number})
	}
	if !known || a.more && a.pods < most {
		var lasting bool
		if a, lasting = t.count(node, w, most); !lasting {
			return a
		}
		t.memo.keep(question{w.key, number}, a)
	}
	w.answers[number] = a
	return a
}

// count asks the allocator. The answer lasts if it depends on nothing but the claims and the
// devices of nodes that are alike.
func (t *trial) count(node *capacity.Node, w *wish, most int64) (a answer, lasting bool) {
	var near []*resourcev1.ResourceSlice
	var pools []pool
	numbered := t.alike[node.Object.Name] != noNumber
	if n := t.inventory.nodes[node.Object.Name]; n != nil {
		near, pools = n.slices, n.pools
	}
	state := t.newState(t.of(pools))
	for a.more = true; a.pods < most; a.pods++ {
		found := t.search(node, w, near, state)
		if found.refusal != "" {
			return answer{pods: a.pods, refusal: found.refusal, broken: found.broken}, numbered && !names(found.refusal, pools)
		}
		if found.unknown || found.starved {
			return answer{pods: maxCounted, more: true}, numbered && !found.starved
		}
		for i := range found.results {
			t.takeAll(state, &found.results[i])
		}
	}
	return a, numbered
}

// names reports whether a text is about some pool, and not about one that is alike.
func names(text string, pools []pool) bool {
	return text != notAllocatable && slices.ContainsFunc(pools, func(p pool) bool { return strings.Contains(text, p.name) })
}
