package image

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// refName is the annotation by which containerd names an imported image.
const refName = "org.opencontainers.image.ref.name"

// containerdName is the same with the whole name, registry and all.
const containerdName = "io.containerd.image.name"

// Image is an image that is to be written.
type Image struct {
	// Name is its full name, with registry and tag.
	Name string
	// Root is the folder of its files: they become its only layer, owned by root.
	Root string
	// User, Entrypoint and Cmd are what a container starts as.
	User            string
	Entrypoint, Cmd []string
}

// Write writes an OCI image layout as a tar archive. The same files make the same bytes.
func (i Image) Write(file string) error {
	reference, err := name.ParseReference(i.Name, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("image %q: %w", i.Name, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return i.files(), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Name, err)
	}
	img, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), layer)
	if err != nil {
		return err
	}
	img, err = mutate.ConfigFile(mutate.ConfigMediaType(img, types.OCIConfigJSON), i.config(img))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), "layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	index, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	names := map[string]string{containerdName: i.Name, refName: reference.Identifier()}
	if err := index.AppendImage(img, layout.WithAnnotations(names)); err != nil {
		return err
	}
	return pack(dir, file)
}

func (i Image) config(img v1.Image) *v1.ConfigFile {
	config, err := img.ConfigFile()
	if err != nil {
		config = &v1.ConfigFile{}
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{
		User: i.User, Entrypoint: i.Entrypoint, Cmd: i.Cmd, WorkingDir: "/",
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
	}
	return config
}

// files streams the root as a tar archive.
func (i Image) files() io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		_ = writer.CloseWithError(archive(i.Root, writer)) // never fails
	}()
	return reader
}

func pack(dir, file string) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	return archive(dir, f)
}

// archive writes a folder's content, in the order of names, without owners and times.
func archive(dir string, w io.Writer) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return add(out, dir, path, entry)
	})
	if err != nil {
		return err
	}
	return out.Close()
}

func add(out *tar.Writer, dir, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	*header = tar.Header{
		Typeflag: header.Typeflag, Name: filepath.ToSlash(relative), Linkname: link,
		Size: header.Size, Mode: header.Mode, ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
	}
	if info.IsDir() {
		header.Name += "/"
	}
	if err := out.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(out, f)
	return err
}
