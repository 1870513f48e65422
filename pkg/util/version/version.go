// Package version knows the version of Jobferry's programs.
package version

import (
	"cmp"
	"runtime/debug"
)

// Header names the manager's version in answers about its API.
const Header = "Jobferry-Version"

// release is the version that tools/build was told; the linker sets it.
var release string

// development is the version of a program that was built outside of a repository.
const development = "v0.0.0-dev"

// Get returns the version of the running program: a semantic version with a leading v. Without a
// release it is Go's: the tag or commit that the program was built from.
func Get() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return choose(release, info.Main.Version)
}

func choose(release, module string) string {
	if module == "(devel)" {
		module = ""
	}
	return cmp.Or(release, module, development)
}
