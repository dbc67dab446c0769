/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Counted loops in strips. A marker in a loop's body keeps the loop from being vectorized. An innermost loop with one
 * marker, no other call, and a number of iterations that is known when the loop begins
 *
 *   do { body; mark(); } while (--n);
 *
 * becomes
 *
 *   do {
 *           strip = hot.flag ? 1 : min(n, most);
 *           n -= strip;
 *           do { body; } while (--strip);
 *   } while (n && (mark(), true));
 *
 * and the inner loop is the same as without yields. `most` is 1024, or less if an iteration takes long. While the flag
 * is not set no yield would switch, and if it is set, as it always is in a group that switches at every yield, each
 * iteration yields. A loop that reads or writes memory on both sides of its marker (a condition that was moved there)
 * is not changed.
 */
#include "pass.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Scalar/IndVarSimplify.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopDeletion.h"
#include "llvm/Transforms/Scalar/LoopIdiomRecognize.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

#include <set>

using namespace llvm;

namespace weft
{
constexpr uint64_t ShortCopy = 256; /* bytes that memcpy or memset moves in about the time of a few instructions */

bool isLong(const IntrinsicInst &I)
{
	auto *Moves = dyn_cast<AnyMemIntrinsic>(&I);
	auto *Bytes = Moves ? dyn_cast<ConstantInt>(Moves->getLength()) : nullptr;

	return Moves && (!Bytes || Bytes->getZExtValue() > ShortCopy);
}

namespace
{
constexpr uint64_t Strip = 1024;	   /* iterations, at most */
constexpr uint64_t StripWork = 64 * Strip; /* instructions, about: some ten microseconds */

/* Roughly, the number of instructions that this instruction is worth. */
uint64_t costOf(const Instruction &I)
{
	auto *Moves = dyn_cast<AnyMemIntrinsic>(&I);

	if (Moves)
		return 8 + cast<ConstantInt>(Moves->getLength())->getZExtValue() / 16;
	if (isa<IntrinsicInst>(I))
		return I.isDebugOrPseudoInst() ? 0 : 8;
	switch (I.getOpcode()) {
	case Instruction::UDiv:
	case Instruction::SDiv:
	case Instruction::URem:
	case Instruction::SRem:
	case Instruction::FDiv:
	case Instruction::FRem:
		return 24;
	default:
		return 1;
	}
}

uint64_t iterationsOfStrip(const Loop &L)
{
	uint64_t Cost = 0;

	for (BasicBlock *B : L.blocks())
		for (Instruction &I : *B)
			Cost += costOf(I);
	return std::clamp<uint64_t>(StripWork / Cost, 1, Strip);
}

/* The loop's only call, if it is a marker that runs in each iteration. */
CallInst *onlyMark(Loop &L, DominatorTree &Tree)
{
	CallInst *Mark = nullptr;

	for (BasicBlock *B : L.blocks())
		for (Instruction &I : *B) {
			auto *Call = dyn_cast<CallBase>(&I);
			auto *Intrinsic = dyn_cast<IntrinsicInst>(&I);

			if (!Call || (Intrinsic && !isLong(*Intrinsic)))
				continue;
			if (Mark || !calls(I, LoopMark) || !Tree.dominates(B, L.getLoopLatch()))
				return nullptr;
			Mark = cast<CallInst>(Call);
		}
	return Mark;
}

bool touchesMemory(BasicBlock::iterator From, BasicBlock::iterator To)
{
	return any_of(make_range(From, To), [](Instruction &I) { return I.mayReadOrWriteMemory(); });
}

/* Is no memory read or written from the beginning of the iteration to the marker? */
bool isFirst(CallInst *Mark, Loop &L)
{
	return Mark->getParent() == L.getHeader() && !touchesMemory(L.getHeader()->begin(), Mark->getIterator());
}

/* Is no memory read or written from the beginning of the iteration to the marker, or from there to the end? */
bool isBetween(CallInst *Mark, Loop &L)
{
	std::vector<BasicBlock *> Work{Mark->getParent()};
	std::set<BasicBlock *> Seen;

	if (isFirst(Mark, L))
		return true;
	if (touchesMemory(std::next(Mark->getIterator()), Mark->getParent()->end()))
		return false;
	while (!Work.empty()) {
		BasicBlock *B = Work.back();

		Work.pop_back();
		for (BasicBlock *S : successors(B)) {
			if (S == L.getHeader() || !L.contains(S) || !Seen.insert(S).second)
				continue;
			if (touchesMemory(S->begin(), S->end()))
				return false;
			Work.push_back(S);
		}
	}
	return true;
}

/*
 *   preheader -> header … latch -> exit         becomes
 *   preheader -> outer -> header … latch -> next -> again -> outer
 *                                                \-> exit
 */
class Mining
{
      public:
	Mining(Function &F, Loop &L, ScalarEvolution &SE, CallInst *Mark)
	    : F(F), L(L), SE(SE), Mark(Mark), Header(L.getHeader()), Latch(L.getLoopLatch()),
	      Before(L.getLoopPreheader()), Exit(L.getExitBlock())
	{
	}
	bool run();

      private:
	Function &F;
	Loop &L;
	ScalarEvolution &SE;
	CallInst *Mark;
	BasicBlock *Header, *Latch, *Before, *Exit;

	void split(Value *Count, BranchInst *Back);
	void markEnds(bool First, BasicBlock *Next);
};

void Mining::split(Value *Count, BranchInst *Back)
{
	LLVMContext &C = F.getContext();
	Type *T = Count->getType();
	auto *Outer = BasicBlock::Create(C, "strips", &F, Header);
	auto *Next = BasicBlock::Create(C, "strip.end", &F, Exit);
	auto *Again = BasicBlock::Create(C, "strip.next", &F, Exit);
	IRBuilder<> IR(Outer);
	PHINode *Left = IR.CreatePHI(T, 2, "left");

	/* The values that the loop carries go through the outer loop, too. */
	std::vector<std::pair<PHINode *, PHINode *>> Carried;
	for (PHINode &Phi : Header->phis()) {
		PHINode *O = IR.CreatePHI(Phi.getType(), 2, Phi.getName() + ".strip");
		O->addIncoming(Phi.getIncomingValueForBlock(Before), Before);
		Carried.push_back({&Phi, O});
	}
	Value *At = IR.CreateThreadLocalAddress(hot(*F.getParent()));
	LoadInst *Flag =
	    IR.CreateAlignedLoad(IR.getInt32Ty(), IR.CreateConstGEP1_64(IR.getInt8Ty(), At, HotFlag), Align(4));
	Flag->setAtomic(AtomicOrdering::Monotonic);
	Value *Most = IR.CreateSelect(IR.CreateICmpEQ(Flag, IR.getInt32(0)), ConstantInt::get(T, iterationsOfStrip(L)),
				      ConstantInt::get(T, 1));
	Value *Now = IR.CreateBinaryIntrinsic(Intrinsic::umin, Left, Most);
	IR.CreateBr(Header);

	IRBuilder<> AtHeader(Header, Header->begin());
	PHINode *Done = AtHeader.CreatePHI(T, 2, "done");
	IRBuilder<> AtLatch(Back);
	Value *More = AtLatch.CreateNUWAdd(Done, ConstantInt::get(T, 1));
	Done->addIncoming(ConstantInt::get(T, 0), Outer);
	Done->addIncoming(More, Latch);
	Value *Over = AtLatch.CreateICmpEQ(More, Now);

	IR.SetInsertPoint(Next);
	for (auto &[Phi, O] : Carried) {
		Value *V = Phi->getIncomingValueForBlock(Latch);
		PHINode *Out = IR.CreatePHI(V->getType(), 1, Phi->getName() + ".out");
		Out->addIncoming(V, Latch);
		O->addIncoming(Out, Again);
		Phi->setIncomingBlock(Phi->getBasicBlockIndex(Before), Outer);
		Phi->setIncomingValueForBlock(Outer, O);
	}
	for (PHINode &Phi : Exit->phis()) {
		int I = Phi.getBasicBlockIndex(Latch);
		PHINode *Out = IR.CreatePHI(Phi.getType(), 1);
		Out->addIncoming(Phi.getIncomingValue(I), Latch);
		Phi.setIncomingValue(I, Out);
		Phi.setIncomingBlock(I, Next);
	}
	Value *Rest = IR.CreateSub(Left, Now);
	Left->addIncoming(Count, Before);
	Left->addIncoming(Rest, Again);
	IR.CreateCondBr(IR.CreateICmpEQ(Rest, ConstantInt::get(T, 0)), Exit, Again);
	IR.SetInsertPoint(Again);
	bool First = isFirst(Mark, L);
	Mark->moveBefore(*Again, IR.CreateBr(Outer)->getIterator());
	Before->getTerminator()->replaceSuccessorWith(Header, Outer);
	BranchInst *New = AtLatch.CreateCondBr(Over, Next, Header);
	New->setMetadata(LLVMContext::MD_loop, Back->getMetadata(LLVMContext::MD_loop));
	Back->eraseFromParent();
	markEnds(First, Next);
}

/*
 * Markers at the loop's entry and exit. If the marker comes first in an iteration, the optimizer has moved the source's
 * first iteration to the front of the loop, and the marker is due before the first strip, too. If it comes last, a
 * yield around a call behind the loop may have been removed because of it.
 */
void Mining::markEnds(bool First, BasicBlock *Next)
{
	BasicBlock *Place = First ? Before : yieldsAround(F) ? SplitEdge(Next, Exit) : nullptr;

	if (Place)
		CallInst::Create(runtime(*F.getParent(), CallMark, Type::getVoidTy(F.getContext()), {}), "",
				 Place->getTerminator()->getIterator())
		    ->setDebugLoc(Mark->getDebugLoc());
}

bool Mining::run()
{
	auto *Back = dyn_cast<BranchInst>(Latch->getTerminator());

	if (!Before || !Exit || L.getExitingBlock() != Latch || !Back || !Back->isConditional() || !isBetween(Mark, L))
		return false;
	const SCEV *Taken = SE.getBackedgeTakenCount(&L);
	if (isa<SCEVCouldNotCompute>(Taken) || Taken->getType()->isPointerTy())
		return false;
	/* A number of 64 bits plus 1 may be 2^64. Such a loop does not end, and must keep its behaviour. */
	Type *I64 = Type::getInt64Ty(F.getContext());
	if (SE.getTypeSizeInBits(Taken->getType()) > 64)
		return false;
	const SCEV *Trips = SE.getAddExpr(SE.getNoopOrZeroExtend(Taken, I64), SE.getOne(I64));
#if LLVM_VERSION_MAJOR >= 22
	SCEVExpander Expander(SE, "weft");
#else
	SCEVExpander Expander(SE, F.getParent()->getDataLayout(), "weft");
#endif
	if (!Expander.isSafeToExpand(Trips))
		return false;
	Value *Count = Expander.expandCodeFor(Trips, I64, Before->getTerminator());
	split(Count, Back);
	return true;
}
} // namespace

/* The vectorizer's own preparation, which comes after this pass. */
static void prepare(Function &F, FunctionAnalysisManager &FAM)
{
	FunctionPassManager Passes;

	Passes.addPass(createFunctionToLoopPassAdaptor(LoopRotatePass()));
	FAM.invalidate(F, Passes.run(F, FAM));
}

/* Moves code out of the strips that could not leave a loop with a marker. */
static void tidy(Function &F, FunctionAnalysisManager &FAM)
{
	FunctionPassManager Passes;
	LoopPassManager OfLoop;

	FAM.invalidate(F, PreservedAnalyses::none());
	Passes.addPass(createFunctionToLoopPassAdaptor(LICMPass(LICMOptions()), true));
	OfLoop.addPass(LoopIdiomRecognizePass());
	OfLoop.addPass(IndVarSimplifyPass());
	OfLoop.addPass(LoopDeletionPass());
	Passes.addPass(createFunctionToLoopPassAdaptor(std::move(OfLoop)));
	Passes.run(F, FAM);
}

PreservedAnalyses Strips::run(Function &F, FunctionAnalysisManager &FAM)
{
	if (!F.hasFnAttribute(TwinAttribute) || FAM.getResult<LoopAnalysis>(F).empty())
		return PreservedAnalyses::all();
	prepare(F, FAM);
	if (settleMarks(F, false))
		FAM.invalidate(F, PreservedAnalyses::none());

	bool Changed = false;
	std::vector<CallInst *> Marks;

	for (Instruction &I : instructions(F))
		if (calls(I, LoopMark))
			Marks.push_back(cast<CallInst>(&I));
	for (CallInst *Mark : Marks) {
		Loop *L = FAM.getResult<LoopAnalysis>(F).getLoopFor(Mark->getParent());

		if (!L || !L->isInnermost() || !L->getLoopLatch() ||
		    onlyMark(*L, FAM.getResult<DominatorTreeAnalysis>(F)) != Mark)
			continue;
		/* An analysis of one loop may depend on another loop, so it is computed again after each change. */
		if (Mining(F, *L, FAM.getResult<ScalarEvolutionAnalysis>(F), Mark).run()) {
			FAM.invalidate(F, PreservedAnalyses::none());
			Changed = true;
		}
	}
	if (Changed)
		tidy(F, FAM);
	return PreservedAnalyses::none();
}
} // namespace weft
