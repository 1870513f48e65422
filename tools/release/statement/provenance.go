package statement

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	attestation "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const (
	repository    = "https://github.com/jobferry/jobferry"
	predicateType = "https://slsa.dev/provenance/v1"
)

// Build is how a release was made.
type Build struct {
	Version, Commit string
	// Go is the version of the Go toolchain.
	Go    string
	Files []File
	// Artifacts are the digests (sha256:...) of what is pushed to registries, by repository.
	Artifacts map[string]string
}

// Provenance is an in-toto statement about the build, with the predicate of SLSA. It has no times
// and names no machine, so that whoever repeats the build gets the same bytes.
func Provenance(build Build) ([]byte, error) {
	predicate, err := build.predicate()
	if err != nil {
		return nil, err
	}
	statement := &attestation.Statement{
		Type: attestation.StatementTypeUri, PredicateType: predicateType, Predicate: predicate, Subject: build.subjects(),
	}
	if err := statement.Validate(); err != nil {
		return nil, err
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return nil, err
	}
	// Its spaces are random.
	var out bytes.Buffer
	err = json.Indent(&out, text, "", "  ")
	out.WriteByte('\n')
	return out.Bytes(), err
}

func (b Build) subjects() []*attestation.ResourceDescriptor {
	var subjects []*attestation.ResourceDescriptor
	for _, file := range b.Files {
		subjects = append(subjects, &attestation.ResourceDescriptor{Name: file.Name, Digest: map[string]string{"sha256": file.Digest}})
	}
	for _, name := range slices.Sorted(maps.Keys(b.Artifacts)) {
		subjects = append(subjects, &attestation.ResourceDescriptor{
			Name: "oci:" + name, Digest: map[string]string{"sha256": b.Artifacts[name][len("sha256:"):]},
		})
	}
	return subjects
}

func (b Build) predicate() (*structpb.Struct, error) {
	parameters, err := structpb.NewStruct(map[string]any{"command": "make release VERSION=" + b.Version, "version": b.Version})
	if err != nil {
		return nil, err
	}
	typed := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType:          repository + "/blob/" + b.Version + "/docs/reference/release.md",
			ExternalParameters: parameters,
			ResolvedDependencies: []*attestation.ResourceDescriptor{
				{Uri: "git+" + repository + "@" + b.Commit, Digest: map[string]string{"gitCommit": b.Commit}},
				{Uri: "pkg:generic/go@" + b.Go, Name: "go"},
			},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: repository + "/tree/" + b.Version + "/tools/release"}},
	}
	if err := typed.Validate(); err != nil {
		return nil, fmt.Errorf("the provenance: %w", err)
	}
	text, err := protojson.Marshal(typed)
	if err != nil {
		return nil, err
	}
	predicate := &structpb.Struct{}
	return predicate, protojson.Unmarshal(text, predicate)
}
