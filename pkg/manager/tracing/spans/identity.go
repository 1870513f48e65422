package spans

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// TraceID is the UID of a hub Job, without its dashes.
type TraceID [16]byte

// SpanID is of one span within its trace.
type SpanID [8]byte

// TraceOf returns the ID of a Job's trace.
func TraceOf(uid types.UID) TraceID {
	var id TraceID
	digits, err := hex.DecodeString(strings.ReplaceAll(string(uid), "-", ""))
	if copy(id[:], digits); err != nil || len(digits) != len(id) || id == (TraceID{}) { // no API server of Kubernetes makes such UIDs
		binary.BigEndian.PutUint64(id[:8], hash(string(uid), 1))
		binary.BigEndian.PutUint64(id[8:], hash(string(uid), 2))
	}
	return id
}

// Root returns the ID of the span of the whole Job, the parent of all others.
func Root(uid types.UID) SpanID { return idOf(uid, "", "", time.Time{}) }

// ID returns the span's ID in the Job's trace.
func (s Span) ID(uid types.UID) SpanID {
	if s.Name == Job {
		return Root(uid)
	}
	return idOf(uid, s.Name, s.Worker, s.Start)
}

func idOf(uid types.UID, name, worker string, start time.Time) SpanID {
	h := hash(string(uid), uint64(len(name)))
	h = hash(name, h)
	h = hash(worker, h)
	if !start.IsZero() {
		h = mix(h ^ uint64(start.UnixNano())) //nolint:gosec // any bits will do
	}
	var id SpanID
	binary.BigEndian.PutUint64(id[:], max(h, 1)) // zero is invalid
	return id
}

// Million is the rate by which all Jobs are sampled.
const Million = 1_000_000

// Sampled reports whether a Job is among those of whose traces so many per million are made. All
// managers agree on it.
func Sampled(uid types.UID, perMillion int32) bool {
	return hash(string(uid), 0)%Million < uint64(max(perMillion, 0)) //nolint:gosec // not negative
}

// hash is FNV-1a, with the bits mixed: it allocates nothing.
func hash(s string, seed uint64) uint64 {
	h := 14695981039346656037 ^ seed
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

func mix(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
