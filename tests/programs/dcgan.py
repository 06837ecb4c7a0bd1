"""DCGAN: weights initialised by `apply`, transposed convolutions, two optimizers, noise that stays; pictures of blobs."""

import torch
import torch.nn as nn
import torch.nn.parallel
import torch.optim as optim
import torch.utils.data

NZ, NGF, NDF, REAL, FAKE = 16, 8, 8, 1.0, 0.0


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Conv") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
    elif classname.find("BatchNorm") != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(NZ, NGF * 2, 4, 1, 0, bias=False), nn.BatchNorm2d(NGF * 2), nn.ReLU(True),
            nn.ConvTranspose2d(NGF * 2, NGF, 4, 2, 1, bias=False), nn.BatchNorm2d(NGF), nn.ReLU(True),
            nn.ConvTranspose2d(NGF, 1, 4, 2, 1, bias=False), nn.Tanh(),
        )  # fmt: skip

    def forward(self, input):
        return self.main(input)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, NDF, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(NDF, NDF * 2, 4, 2, 1, bias=False), nn.BatchNorm2d(NDF * 2), nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(NDF * 2, 1, 4, 1, 0, bias=False), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, input):
        return self.main(input)


def blobs(count):
    centre = torch.rand(count, 2) * 8 + 4
    y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    distance = (y - centre[:, :1, None]) ** 2 + (x - centre[:, 1:, None]) ** 2
    return (2 * torch.exp(-distance / 12) - 1).unsqueeze(1)


def main():
    torch.manual_seed(999)
    torch.use_deterministic_algorithms(True)
    loader = torch.utils.data.DataLoader(blobs(256), batch_size=32, shuffle=True)
    netG, netD = Generator(), Discriminator()
    netG.apply(weights_init)
    netD.apply(weights_init)
    print(netG)
    criterion = nn.BCELoss()
    fixed_noise = torch.randn(8, NZ, 1, 1)
    optimizerD, optimizerG = (optim.Adam(net.parameters(), lr=0.0005, betas=(0.5, 0.999)) for net in (netD, netG))
    for epoch in range(2):
        for i, data in enumerate(loader, 0):
            netD.zero_grad()
            label = torch.full((data.size(0),), REAL, dtype=torch.float)
            output = netD(data).view(-1)
            errD_real = criterion(output, label)
            errD_real.backward()
            D_x = output.mean().item()
            fake = netG(torch.randn(data.size(0), NZ, 1, 1))
            label.fill_(FAKE)
            output = netD(fake.detach()).view(-1)
            errD_fake = criterion(output, label)
            errD_fake.backward()
            errD = errD_real + errD_fake
            optimizerD.step()
            netG.zero_grad()
            label.fill_(REAL)
            output = netD(fake).view(-1)
            errG = criterion(output, label)
            errG.backward()
            optimizerG.step()
            if i % 2 == 0:
                print(f"[{epoch}][{i}/{len(loader)}] D {errD.item():.4f} G {errG.item():.4f} D(x) {D_x:.4f} D(G(z)) {output.mean().item():.4f}")
    torch.use_deterministic_algorithms(False)
    netG.eval()
    with torch.no_grad():
        pictures = netG(fixed_noise).detach().cpu()
    print("pictures", tuple(pictures.shape), f"mean {pictures.mean():.4f} std {pictures.std():.4f}")


if __name__ == "__main__":
    main()
