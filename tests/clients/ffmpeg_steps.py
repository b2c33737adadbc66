"""ffmpeg sends frames to the device and fetches them again; the sums of the frames are those of frames
that stayed in host memory."""
import re
import subprocess

CASES = (("testsrc", "320x240", "nv12"), ("testsrc2", "1280x720", "yuv420p"), ("mandelbrot", "642x362", "nv12"))


def frames(source, size, pixels, way):
    """Each frame's sum, through a chain of filters."""
    done = subprocess.run(
        ["ffmpeg", "-hide_banner", "-loglevel", "error", "-nostdin", "-init_hw_device", "cuda=gpu:0",
         "-filter_hw_device", "gpu", "-f", "lavfi", "-i", f"{source}=size={size}:rate=10", "-frames:v", "12",
         "-vf", f"format={pixels},{way}format={pixels}", "-f", "framemd5", "-"],
        capture_output=True, text=True, check=False)
    if done.returncode:
        print(source, "status", done.returncode, done.stderr.strip())
    return re.findall(r"\b[0-9a-f]{32}\b", done.stdout)


for case in CASES:
    stayed, came = frames(*case, ""), frames(*case, "hwupload_cuda,hwdownload,")
    for number, (here, there) in enumerate(zip(stayed, came)):
        print(*case, number, there, "right" if here == there else "wrong")
