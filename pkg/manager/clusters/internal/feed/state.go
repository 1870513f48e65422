package feed

// CapacityState says whether the ledger shows what the worker has.
type CapacityState struct {
	Known bool
	// Listing: it will be known shortly.
	Listing bool
	// Missing says what keeps it from being known; empty if it's known, still being listed, or not
	// asked for.
	Missing string
	// Unchecked says, while it's known, by what Pods aren't judged, and why; mostly empty.
	Unchecked string
	// TimesKnown: the times of all Pods are, of those that have ended, too. TimesListing: they will
	// be.
	TimesKnown, TimesListing bool
}
