package oci

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Artifact is an image or a chart that has a name in a registry.
type Artifact struct {
	// Repository is its path below the registry's.
	Repository, Tag string
	Content         interface {
		remote.Taggable
		Digest() (v1.Hash, error)
	}
}

// In returns the artifact's name in a registry, and its full name by digest. A registry may have a
// path: ghcr.io/jobferry.
func (a Artifact) In(registry string) (name.Tag, name.Digest, error) {
	tag, err := name.NewTag(registry+"/"+a.Repository+":"+a.Tag, name.StrictValidation)
	if err == nil && strings.Contains(registry, "://") {
		err = errors.New("it's an address with a scheme")
	}
	if err != nil {
		return name.Tag{}, name.Digest{}, fmt.Errorf("REGISTRY=%s is no registry such as ghcr.io/jobferry or localhost:5000: %w", registry, err)
	}
	digest, err := a.Content.Digest()
	return tag, tag.Digest(digest.String()), err
}

// Push puts an artifact into a registry, and asks for it there. What has its tag already stays: the
// same artifact is enough, and another one is an error.
func Push(ctx context.Context, registry string, artifact Artifact) (name.Digest, error) {
	tag, digest, err := artifact.In(registry)
	if err != nil {
		return digest, err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	switch there, err := remote.Head(tag, options...); {
	case err == nil && there.Digest.String() == digest.DigestStr():
		return digest, nil
	case err == nil:
		return digest, fmt.Errorf("%s is there with other content, %s instead of %s: a release never changes, so release another version",
			tag, there.Digest, digest.DigestStr())
	case !absent(err):
		return digest, fmt.Errorf("%s: %w", tag, err)
	}
	if err := remote.Push(tag, artifact.Content, options...); err != nil {
		return digest, fmt.Errorf("push %s: %w", tag, err)
	}
	there, err := remote.Head(tag, options...)
	if err != nil {
		return digest, fmt.Errorf("after the push of %s: %w", tag, err)
	}
	if there.Digest.String() != digest.DigestStr() {
		return digest, fmt.Errorf("after the push, %s is %s, not %s", tag, there.Digest, digest.DigestStr())
	}
	return digest, nil
}

func absent(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
