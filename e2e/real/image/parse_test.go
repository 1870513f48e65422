package image

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	stages, err := Parse(`# syntax
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY a b ./
RUN --mount=type=cache,target=/x --mount=type=cache,target=/y \
    A=1 go build \
    ./...

from scratch
COPY --from=build /out/ /
USER 1:1
ENTRYPOINT ["/a", "-b"]
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Stage{
		{Name: "build", Base: "golang:1.26", Steps: []Step{
			{Line: 3, Verb: "WORKDIR", Text: "/src"},
			{Line: 4, Verb: "COPY", Text: "a b ./"},
			{
				Line: 5, Verb: "RUN", Text: "A=1 go build ./...",
				Flags: []string{"--mount=type=cache,target=/x", "--mount=type=cache,target=/y"},
			},
		}},
		{
			Base: "scratch", User: "1:1", Entrypoint: []string{"/a", "-b"},
			Steps: []Step{{Line: 10, Verb: "COPY", Flags: []string{"--from=build"}, Text: "/out/ /"}},
		},
	}
	if diff := cmp.Diff(want, stages); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefusesWhatBuildCannotDo(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "no FROM",
		"RUN x":                              "line 1: RUN before the first FROM",
		"FROM a b":                           "line 1: FROM a b",
		"FROM scratch\n\nHEALTHCHECK NONE":   "line 3: HEALTHCHECK is not among",
		"FROM scratch\nENTRYPOINT /manager":  "line 2: ENTRYPOINT /manager",
		"FROM scratch\nADD http://x/y /tmp/": "line 2: ADD is not among",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The Dockerfile that users build the image from is one that Build can carry out, and ends as the
// charts expect.
func TestOurDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	stages, err := Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	last := stages[len(stages)-1]
	if last.Base != Scratch || last.User != "65532:65532" || !cmp.Equal(last.Entrypoint, []string{"/jobferry-manager"}) {
		t.Errorf("the image is FROM %s, USER %s, ENTRYPOINT %v", last.Base, last.User, last.Entrypoint)
	}
}
