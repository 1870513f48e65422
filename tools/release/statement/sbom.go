package statement

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// SBOM lists the modules that the linker put into a program, by what Go wrote into it. It's a
// CycloneDX document.
func SBOM(name, version string, program []byte, info *debug.BuildInfo, created time.Time) ([]byte, error) {
	digest := sha256.Sum256(program)
	main := packageURL(info.Main.Path, version) + "#" + strings.TrimPrefix(info.Path, info.Main.Path+"/")
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, []byte(main+"@sha256:"+hex.EncodeToString(digest[:]))).URN()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: created.UTC().Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: main, PackageURL: main, Type: cyclonedx.ComponentTypeApplication, Name: name, Version: version,
			Hashes:   &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}},
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		},
	}
	library, err := component("std", strings.TrimPrefix(info.GoVersion, "go"), "")
	if err != nil {
		return nil, err
	}
	components := []cyclonedx.Component{library}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		dependency, err := component(module.Path, module.Version, module.Sum)
		if err != nil {
			return nil, err
		}
		components = append(components, dependency)
	}
	bom.Components = &components
	dependsOn := make([]string, len(components))
	for i, c := range components {
		dependsOn[i] = c.BOMRef
	}
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main, Dependencies: &dependsOn}}

	var out bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}

// component is a module. Its sum is that of go.sum.
func component(path, version, sum string) (cyclonedx.Component, error) {
	purl := packageURL(path, version)
	module := cyclonedx.Component{
		BOMRef: purl, PackageURL: purl, Type: cyclonedx.ComponentTypeLibrary, Scope: cyclonedx.ScopeRequired, Name: path, Version: version,
	}
	if sum == "" {
		return module, nil
	}
	digest, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err != nil || len(digest) != sha256.Size {
		return module, fmt.Errorf("module %s: the sum %q is no SHA-256 as go.sum has them", path, sum)
	}
	module.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(digest)}}
	return module, nil
}

// packageURL is a module's package URL: https://github.com/package-url/purl-spec
func packageURL(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
