package view

import "testing"

func TestExcerpt(t *testing.T) {
	const description = "Name:  sweep\nState: Running\n\nWorkers:\n  NAME\n  east\n\nShards:\n  WORKER  LEFT  \n  east    3\n\nEvents:\n  none\n"
	const want = "  Name:  sweep\n  State: Running\n\n  Shards:\n    WORKER  LEFT\n    east    3\n  ..."
	if got := Excerpt(description, "Shards"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
